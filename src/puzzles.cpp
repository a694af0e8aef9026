// The worlds with answers. Formats are terse (a byte is a token) and regular, so that a small model spends itself on
// the state that has to be kept, not on syntax.
#include "puzzles.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "error.h"

namespace {

// Writes a puzzle down: the world says, the model answers.
class Writer {
 public:
  Writer(Task task, int longest) : longest_(longest) { draft_.puzzle.task = task; }
  int room() const { return longest_ - int(draft_.puzzle.text.size()); }
  bool empty() const { return draft_.puzzle.text.empty(); }
  bool unanswered() const { return draft_.puzzle.answers.empty(); }
  void say(const std::string& words) { draft_.puzzle.text += words; }
  void answer(const std::string& words, int size) {
    draft_.puzzle.answers.push_back({int(draft_.puzzle.text.size()), int(words.size()), size});
    say(words);
  }
  // An answer after which the document always ends, so that saying so is part of it.
  void last_answer(const std::string& words, int size) {
    answer(words, size);
    ++draft_.puzzle.answers.back().length;
  }
  Draft draft(std::string core) {
    check(room() >= 0, "a puzzle of %d tokens more than fit", -room());
    draft_.core = std::move(core);
    return std::move(draft_);
  }
  Draft draft() { return draft(draft_.puzzle.text); }

 private:
  int longest_;
  Draft draft_;
};

std::string digit(int value) { return std::string(1, char('0' + value)); }
std::string letter(int value) { return std::string(1, char('a' + value)); }
int between(Random* random, int least, int most) { return least + random->below(most - least + 1); }

// The length of a document that may be as long as it likes: all of `longest` or, where that is large, a half, a
// quarter, … of it, so that lengths vary and documents still fill rows of `longest` without a gap.
int draw_length(Random* random, int longest) {
  constexpr int kWorthwhile = 48;
  int halvings = 0;
  while (longest >> (halvings + 1) >= kWorthwhile) ++halvings;
  return longest >> random->below(halvings + 1);
}

// `0211?1021?102…`: `?` asks for the sum of the digits since the last answer, modulo 3 (of none at all: 0). Other
// moduli have alphabets of their own, whose i-th letter stands for i, so that a text needs no header to say which it
// is. One question in twenty comes after 16 digits or more (documents of 48 tokens).
Draft draw_sums(Random* random, int longest) {
  static const std::string kAlphabets[] = {"012", "ab", "ABCD", "vwxyz"};
  const std::string& alphabet = kAlphabets[random->below(30) > 0 ? 0 : 1 + random->below(3)];
  int modulus = int(alphabet.size()), sum = 0, size = 0;
  Writer writer(Task::sums, draw_length(random, longest));
  while (writer.room() > 0) {
    bool last_chance = writer.unanswered() && writer.room() == 2;
    bool ask = random->uniform() < 0.15 || last_chance;  // a text begins with a digit, which says the alphabet
    if (ask && !writer.empty() && writer.room() >= 2) {
      writer.say("?");
      writer.answer(alphabet.substr(sum, 1), size);
      sum = size = 0;
    } else {
      int value = random->below(modulus);
      writer.say(alphabet.substr(value, 1));
      sum = (sum + value) % modulus;
      ++size;
    }
  }
  return writer.draft();
}

// `a=1;b=0;a=0;b?0;a?0`: one to eight binary registers; `?` asks for the value written last. The size of a question is
// how many writes ago that was, 1 for the last one.
Draft draw_registers(Random* random, int longest) {
  int registers = 1 << random->below(4);
  int items = (draw_length(random, longest) + 1) / 4;
  Writer writer(Task::registers, longest);
  std::vector<int> value(registers), written_at(registers), known;  // known: the registers that were written
  int writes = 0;
  for (int item = 0; item < items; ++item) {
    if (item > 0) writer.say(";");
    bool ask = item == items - 1 || (item > 0 && random->uniform() < 0.25);
    if (ask) {
      int r = known[random->below(int(known.size()))];
      writer.say(letter(r) + "?");
      writer.answer(digit(value[r]), writes - written_at[r]);
    } else {
      int r = random->below(registers);
      if (std::find(known.begin(), known.end(), r) == known.end()) known.push_back(r);
      value[r] = random->below(2);
      written_at[r] = writes++;
      writer.say(letter(r) + "=" + digit(value[r]));
    }
  }
  return writer.draft();
}

// `need 3:+.+?more;.+?done;need 2:…`: `+` is a piece of work, `.` is nothing; `?` asks whether as many are done as
// needed. The size of a question is the number of marks since `need`. The need and the number of pieces are few, so it
// is the whole text that is held out: the sequence of marks.
Draft draw_counters(Random* random, int longest) {
  constexpr int kOverhead = 7 + 6;  // "need 3:" and "?done;"
  Writer writer(Task::counters, draw_length(random, longest));
  while (writer.room() > kOverhead) {
    int need = between(random, 1, std::min(9, writer.room() - kOverhead));
    writer.say("need " + digit(need) + ":");
    int done = 0, marks = 0, since_question = 0;
    while (true) {
      int spare = writer.room() - (need - done) - 6;
      double choice = random->uniform();
      if (choice < 0.15 && done < need && since_question > 0 && spare >= 6) {
        writer.say("?");
        writer.answer("more;", marks);
        since_question = 0;
        continue;
      }
      if (choice >= 0.15 && choice < 0.35 && spare >= 1) {
        writer.say(".");
      } else if (done < need) {
        writer.say("+");
        ++done;
      } else {
        break;
      }
      ++marks, ++since_question;
    }
    writer.say("?");
    writer.answer("done;", marks);
  }
  return writer.draft();
}

// `state=47;x=3;y+2;x-1;state?47.`: the state, then operations on scratch variables that don't matter, then what it
// was.
Draft draw_memory(Random* random, int longest) {
  constexpr int kOverhead = 9 + 9;  // "state=47;" and "state?47."
  std::string state = std::to_string(between(random, 10, 99));
  Writer writer(Task::memory, longest);
  writer.say("state=" + state + ";");
  int operations = between(random, 3, (longest - kOverhead) / 4);
  for (int i = 0; i < operations; ++i) {
    writer.say(std::string(1, "xyz"[random->below(3)]));
    writer.say(std::string(1, "=+-"[random->below(3)]));
    writer.say(digit(random->below(10)) + ";");
  }
  writer.say("state?");
  writer.last_answer(state + ".", operations);
  return writer.draft();
}

// `ball 2 of 3:13 12 ?1 23 ?1`: the ball is under cup 2 of 3; `13` swaps cups 1 and 3; `?` asks where it is. The size
// of a question is the number of swaps since the ball was seen.
Draft draw_cups(Random* random, int longest) {
  int cups = between(random, 3, 5), ball = between(random, 1, cups), swaps = 0;
  Writer writer(Task::cups, longest);
  writer.say("ball " + digit(ball) + " of " + digit(cups) + ":");
  int items = (draw_length(random, longest) - 12 + 1) / 3;
  for (int item = 0; item < items; ++item) {
    if (item > 0) writer.say(" ");
    bool ask = item == items - 1 || (item < items - 2 && swaps > 0 && random->uniform() < 0.2);
    if (ask) {
      writer.say("?");
      writer.answer(digit(ball), swaps);
      swaps = 0;
    } else {
      int left = between(random, 1, cups - 1), right = between(random, left + 1, cups);
      writer.say(digit(left) + digit(right));
      ball = ball == left ? right : ball == right ? left : ball;
      ++swaps;
    }
  }
  return writer.draft();
}

void shuffle(std::vector<int>* items, Random* random) {
  for (int n = int(items->size()); n > 1; --n) std::swap((*items)[n - 1], (*items)[random->below(n)]);
}

// `c>a d>b a>d b>c;a3:...c;b1:.c;`: arrows that form one ring; `a3:` asks what stands three arrows after a, and the
// model says a dot for each before the letter: as many silent steps as it takes.
Draft draw_chains(Random* random, int longest) {
  int length = draw_length(random, longest);
  Writer writer(Task::chains, length);
  int nodes = between(random, 4, std::clamp(length / 8, 4, 10));
  std::vector<int> ring(26), order(nodes);
  std::iota(ring.begin(), ring.end(), 0);
  std::iota(order.begin(), order.end(), 0);
  shuffle(&ring, random);
  shuffle(&order, random);
  for (int i = 0; i < nodes; ++i)
    writer.say(letter(ring[order[i]]) + ">" + letter(ring[(order[i] + 1) % nodes]) + (i + 1 < nodes ? " " : ";"));
  int from = 0;
  while (writer.room() >= 6) {
    from = (from + between(random, 1, nodes - 1)) % nodes;  // never the same twice running: that would be copying
    int steps = between(random, 1, std::min(nodes - 1, writer.room() - 5));
    writer.say(letter(ring[from]) + digit(steps) + ":");
    writer.answer(std::string(steps, '.') + letter(ring[(from + steps) % nodes]) + ";", steps);
  }
  return writer.draft();
}

int64_t draw_number(Random* random, int digits) {
  int64_t number = 0, place = 1;
  for (int i = 0; i < digits; ++i, place *= 10)
    number += place * (i + 1 < digits ? random->below(10) : between(random, 1, 9));
  return number;
}

// `47+85:7+5+0=12 4+8+1=13 132.`: the digits from the last to the first, with the carry as third summand, then the sum.
// The operands are held out, in either order.
Draft draw_additions(Random* random, int longest) {
  int digits = between(random, 2, std::min(12, (longest - 4) / 12));
  int64_t a = draw_number(random, digits), b = draw_number(random, digits);
  Writer writer(Task::additions, longest);
  writer.say(std::to_string(a) + "+" + std::to_string(b) + ":");
  writer.last_answer(worked_sum(a, b), digits);
  return writer.draft(std::to_string(std::min(a, b)) + "+" + std::to_string(std::max(a, b)));
}

// `3/7 to 3:4r2 2r6 8r4 0.428.`: a proper fraction to three places by long division: each place's digit and remainder,
// then the decimal. The fraction in lowest terms is held out.
Draft draw_fractions(Random* random, int longest) {
  int below = between(random, 3, 299), above = between(random, 1, below - 1);
  int places = between(random, 2, std::min(9, (longest - 16) / 7));
  Writer writer(Task::fractions, longest);
  writer.say(std::to_string(above) + "/" + std::to_string(below) + " to " + digit(places) + ":");
  writer.last_answer(worked_fraction(above, below, places), places);
  int common = std::gcd(above, below);
  return writer.draft(std::to_string(above / common) + "/" + std::to_string(below / common));
}

Draft draw_stories(Random* random, int longest) {
  Writer writer(Task::stories, longest);
  writer.say(draw_story(random, longest));
  return writer.draft();
}

}  // namespace

std::string worked_sum(int64_t a, int64_t b) {
  std::string steps;
  int carry = 0;
  for (int64_t x = a, y = b; x > 0; x /= 10, y /= 10) {
    int p = int(x % 10), q = int(y % 10), total = p + q + carry;
    steps += digit(p) + "+" + digit(q) + "+" + digit(carry) + "=" + std::to_string(total) + " ";
    carry = total / 10;
  }
  return steps + std::to_string(a + b) + ".";
}

std::string worked_fraction(int above, int below, int places) {
  std::string steps, decimals;
  int remainder = above;
  for (int i = 0; i < places; ++i) {
    decimals += digit(10 * remainder / below);
    remainder = 10 * remainder % below;
    steps += decimals.substr(size_t(i)) + "r" + std::to_string(remainder) + " ";
  }
  return steps + "0." + decimals + ".";
}

Draft draw_puzzle(Task task, Random* random, int longest) {
  switch (task) {
    case Task::sums:
      return draw_sums(random, longest);
    case Task::registers:
      return draw_registers(random, longest);
    case Task::counters:
      return draw_counters(random, longest);
    case Task::memory:
      return draw_memory(random, longest);
    case Task::cups:
      return draw_cups(random, longest);
    case Task::chains:
      return draw_chains(random, longest);
    case Task::additions:
      return draw_additions(random, longest);
    case Task::fractions:
      return draw_fractions(random, longest);
    case Task::stories:
      return draw_stories(random, longest);
  }
  check(false, "task %d", int(task));
  return {};
}
