// Stories for small readers: a hero, a friend, a few words, and plots of up to four sentences that make sense wherever
// they stop.
#include <map>
#include <vector>

#include "puzzles.h"

namespace {

using Words = std::vector<const char*>;

// Nouns and adjectives begin with consonants, so that "a" is right before all of them.
const Words kGirls = {"Mia", "Lily", "Anna", "Sue", "Zoe", "Eva", "Amy", "Lucy", "Kim", "Rose", "Nina", "May"};
const Words kBoys = {"Tom", "Ben", "Max", "Sam", "Tim", "Leo", "Jack", "Bob", "Dan", "Finn", "Joe", "Ned"};
const Words kAnimals = {"dog", "cat", "bird",  "fox",    "frog",  "duck", "pig",   "cow",
                        "hen", "bee", "mouse", "rabbit", "horse", "goat", "sheep", "bear"};
const Words kThings = {"hat", "ball", "cup", "box", "kite", "toy", "boat", "car", "doll", "bag", "book", "coin"};
const Words kLooks = {"red", "blue", "big", "new", "tiny", "green", "pink", "nice", "soft", "pretty"};
const Words kMoods = {"sad", "big", "tiny", "wet", "shy", "lost", "hungry", "happy", "sleepy", "kind", "brown"};
const Words kPlaces = {"in the park", "at home",     "by the lake", "in the hall", "on the hill", "in the wood",
                       "at school",   "in the yard", "by a tree",   "on the road", "in a boat",   "by the sea"};
const Words kFoods = {"a cake", "a pie", "soup", "bread", "jam", "some corn", "a plum", "a pear", "milk", "some nuts"};
const Words kWeathers = {"warm", "cold", "rainy", "sunny", "windy", "dark", "nice", "quiet"};

// A sentence's alternatives; a plot's sentences.
using Sentence = std::vector<std::string>;
using Plot = std::vector<Sentence>;

const std::vector<Plot> kPlots = {
    {{"{hero} had a {look} {thing}.", "{hero} got a {look} {thing}."},
     {"{He} lost it {place}.", "One day it was gone."},
     {"A {animal} found it.", "{friend} found it.", "{He} was sad."},
     {"{hero} was glad again.", "Then it was back {place}."}},
    {{"{hero} saw a {mood} {animal}.", "{hero} met a {mood} {animal} {place}."},
     {"{He} gave it {food}.", "It ran to {him}.", "It sat {place}.", "{He} said hello."},
     {"Now they are friends.", "They played all day.", "{friend} came, too.", "They sang."},
     {"It was a {weather} day.", "Then {he} went home."}},
    {{"{hero} and {friend} sat {place}.", "{hero} and {friend} played {place}."},
     {"They saw a {animal}.", "They ate {food}.", "It began to rain.", "A {animal} came."},
     {"They ran home.", "They laughed.", "What a {weather} day!"}},
    {{"{hero} made {food}.", "{hero} wanted {food}.", "{hero} had {food}."},
     {"{He} gave it to {friend}.", "{He} gave it to a {animal}.", "{friend} had {food}."},
     {"It was so good.", "They ate it all.", "\"Thank you, {hero}!\""},
     {"Then they sat {place}.", "They were full."}},
    {{"The {mood} {animal} wanted {food}.", "A {mood} {animal} lived {place}."},
     {"It asked {hero} for help.", "It looked {place}.", "It met {hero}."},
     {"{He} gave it {food}.", "{He} helped.", "{hero} liked it."},
     {"Then it slept.", "It was happy."}},
    {{"It was a {weather} day.", "One {weather} day, {hero} woke up."},
     {"{hero} sat {place}.", "{hero} played {place}.", "{hero} and {friend} met."},
     {"{He} saw a {animal}.", "{He} found a {thing}.", "{He} ate {food}."},
     {"It was fun!", "Then {he} went home."}},
};

const char* pick(const Words& words, Random* random) { return words[random->below(int(words.size()))]; }

using Cast = std::map<std::string, std::string>;  // what stands for {hero}, {place}, …

void draw_people(Cast* cast, Random* random) {
  bool girl = random->below(2) == 0;
  const Words& names = girl ? kGirls : kBoys;
  (*cast)["hero"] = pick(names, random);
  (*cast)["He"] = girl ? "She" : "He";
  (*cast)["he"] = girl ? "she" : "he";
  (*cast)["him"] = girl ? "her" : "him";
  (*cast)["friend"] = pick(girl ? kBoys : kGirls, random);
}

void draw_scenery(Cast* cast, Random* random) {
  (*cast)["animal"] = pick(kAnimals, random);
  (*cast)["thing"] = pick(kThings, random);
  (*cast)["look"] = pick(kLooks, random);
  (*cast)["mood"] = pick(kMoods, random);
  (*cast)["place"] = pick(kPlaces, random);
  (*cast)["food"] = pick(kFoods, random);
  (*cast)["weather"] = pick(kWeathers, random);
}

std::string expand(const std::string& sentence, const Cast& cast) {
  std::string text;
  for (size_t i = 0; i < sentence.size(); ++i) {
    if (sentence[i] != '{') {
      text += sentence[i];
      continue;
    }
    size_t end = sentence.find('}', i);
    text += cast.at(sentence.substr(i + 1, end - i - 1));
    i = end;
  }
  return text;
}

// "The next day, a sad fox wanted soup.", but "The next day, Tom had jam."
std::string on_the_next_day(std::string sentence) {
  bool name_first = sentence[0] == '{';
  if (!name_first) sentence[0] = char(sentence[0] - 'A' + 'a');
  return "The next day, " + sentence;
}

// One of the sentence's alternatives that fits `room` with the space before it, or "".
std::string draw_sentence(const Sentence& sentence, const Cast& cast, bool next_day, int room, Random* random) {
  int first = random->below(int(sentence.size()));
  for (size_t i = 0; i < sentence.size(); ++i) {
    const std::string& alternative = sentence[(first + i) % sentence.size()];
    std::string text = expand(next_day ? on_the_next_day(alternative) : alternative, cast);
    if (int(text.size()) <= room) return text;
  }
  return "";
}

// Appends a scene, as many sentences as fit; false where not even its first does.
bool append_scene(std::string* story, const Cast& cast, int longest, Random* random) {
  const Plot& plot = kPlots[random->below(int(kPlots.size()))];
  bool first_scene = story->empty();
  for (size_t i = 0; i < plot.size(); ++i) {
    int space = story->empty() ? 0 : 1;
    bool next_day = i == 0 && !first_scene;
    std::string sentence = draw_sentence(plot[i], cast, next_day, longest - int(story->size()) - space, random);
    if (sentence.empty()) return i > 0;
    *story += std::string(space, ' ') + sentence;
  }
  return true;
}

}  // namespace

std::string draw_story(Random* random, int longest) {
  Cast cast;
  std::string story;
  draw_people(&cast, random);
  do draw_scenery(&cast, random);
  while (!append_scene(&story, cast, longest, random));
  do draw_scenery(&cast, random);
  while (append_scene(&story, cast, longest, random) && random->below(4) > 0);
  return story;
}
