// The worlds' rules read from a text, one function each; puzzles.cpp writes the same formats.
#include "questions.h"

#include <algorithm>
#include <map>

#include "puzzles.h"

namespace {

// Takes a text apart from its front. What is not there is not taken.
class Scanner {
 public:
  explicit Scanner(const std::string& text) : text_(text) {}
  bool done() const { return at_ == text_.size(); }
  bool take(const std::string& words) {
    bool there = text_.compare(at_, words.size(), words) == 0;
    at_ += there ? words.size() : 0;
    return there;
  }
  // A character of a set, or 0.
  char take_one_of(const std::string& set) { return !done() && set.find(text_[at_]) != set.npos ? text_[at_++] : '\0'; }
  // A digit from `least` on, or −1.
  int digit(int least = 0) {
    char c = take_one_of("0123456789");
    return c && c - '0' >= least ? c - '0' : -1;
  }
  // A number of at most so many digits without a zero before it, or −1.
  int64_t number(int most_digits) {
    int64_t value = digit(1);
    for (int n = 1; value >= 0 && n < most_digits; ++n) {
      int next = digit();
      if (next < 0) break;
      value = 10 * value + next;
    }
    return value;
  }

 private:
  const std::string& text_;
  size_t at_ = 0;
};

struct Found {
  std::string answer;
  bool ends = false;  // the document ends with it
};
using Read = std::optional<Found>;

constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyz";

Read read_sums(Scanner text) {
  std::string alphabet;
  char first = '\0';
  for (const std::string& other : {std::string("012"), std::string("ab"), std::string("ABCD"), std::string("vwxyz")})
    if (first == '\0' && (first = text.take_one_of(other))) alphabet = other;
  if (!first) return {};
  int modulus = int(alphabet.size());
  for (int sum = int(alphabet.find(first));;) {
    if (text.take("?")) {
      sum %= modulus;
      if (text.done()) return Found{alphabet.substr(size_t(sum), 1)};
      if (!text.take_one_of(alphabet)) return {};
      sum = 0;
    } else if (char value = text.take_one_of(alphabet)) {
      sum += int(alphabet.find(value));
    } else {
      return {};
    }
  }
}

Read read_registers(Scanner text) {
  std::map<char, char> value;
  do {
    char name = text.take_one_of("abcdefgh");
    if (text.take("=")) {
      value[name] = text.take_one_of("01");
      if (!value[name]) return {};
    } else if (text.take("?")) {
      if (!value.count(name)) return {};
      if (text.done()) return Found{std::string(1, value[name])};
      if (!text.take_one_of("01")) return {};
    } else {
      return {};
    }
  } while (text.take(";"));
  return {};
}

Read read_counters(Scanner text) {
  while (text.take("need ")) {
    int need = text.digit(1), done = 0;
    if (need < 0 || !text.take(":")) return {};
    do {
      while (char mark = text.take_one_of("+.")) done += mark == '+';
      if (done > need || !text.take("?")) return {};
      if (text.done()) return Found{done == need ? "done;" : "more;"};
    } while (text.take("more;"));
    if (!text.take("done;")) return {};
  }
  return {};
}

Read read_memory(Scanner text) {
  if (!text.take("state=")) return {};
  int64_t state = text.number(2);
  if (state < 10 || !text.take(";")) return {};
  while (text.take_one_of("xyz"))
    if (!text.take_one_of("=+-") || text.digit() < 0 || !text.take(";")) return {};
  if (!text.take("state?") || !text.done()) return {};
  return Found{std::to_string(state) + ".", true};
}

Read read_cups(Scanner text) {
  if (!text.take("ball ")) return {};
  int ball = text.digit(1);
  if (ball < 0 || !text.take(" of ")) return {};
  int cups = text.digit(ball);
  if (cups < 3 || !text.take(":")) return {};
  do {
    if (text.take("?")) {
      if (text.done()) return Found{std::to_string(ball)};
      if (text.digit(1) < 0) return {};
    } else {
      int left = text.digit(1), right = text.digit(left + 1);
      if (left < 0 || right < 0 || right > cups) return {};
      ball = ball == left ? right : ball == right ? left : ball;
    }
  } while (text.take(" "));
  return {};
}

Read read_chains(Scanner text) {
  std::map<char, char> arrow;
  do {
    char from = text.take_one_of(kLetters);
    if (!from || !text.take(">") || !(arrow[from] = text.take_one_of(kLetters))) return {};
  } while (text.take(" "));
  if (!text.take(";")) return {};
  for (;;) {
    char place = text.take_one_of(kLetters);
    int steps = text.digit(1);
    if (!place || steps < 0 || !text.take(":")) return {};
    for (int step = 0; step < steps; ++step) {
      if (!arrow.count(place)) return {};
      place = arrow[place];
    }
    if (text.done()) return Found{std::string(size_t(steps), '.') + place + ";"};
    while (text.take("."))
      ;
    if (!text.take_one_of(kLetters) || !text.take(";")) return {};
  }
}

Read read_additions(Scanner text) {
  constexpr int kMostDigits = 12;
  int64_t a = text.number(kMostDigits);
  if (a < 10 || !text.take("+")) return {};
  int64_t b = text.number(kMostDigits);
  if (std::to_string(a).size() != std::to_string(b).size() || !text.take(":") || !text.done()) return {};
  return Found{worked_sum(a, b), true};
}

Read read_fractions(Scanner text) {
  int64_t above = text.number(3);
  if (above < 0 || !text.take("/")) return {};
  int64_t below = text.number(3);
  if (below <= above || !text.take(" to ")) return {};
  int places = text.digit(2);
  if (places < 0 || !text.take(":") || !text.done()) return {};
  return Found{worked_fraction(int(above), int(below), places), true};
}

constexpr struct {
  Task task;
  Read (*read)(Scanner);
  World world;
} kWorlds[] = {
    {Task::sums, read_sums, {"? asks for the sum of the digits since the last answer, modulo 3", "0212?"}},
    {Task::registers, read_registers, {"? asks for the value that was written last", "a=1;b=0;a=0;b?"}},
    {Task::counters, read_counters, {"? asks whether as many + are done as needed", "need 3:+.+?"}},
    {Task::memory, read_memory, {"what the state was, after work on x, y and z", "state=47;x=3;y+2;state?"}},
    {Task::cups, read_cups, {"13 swaps cups 1 and 3; ? asks where the ball is", "ball 2 of 3:13 12 ?"}},
    {Task::chains, read_chains, {"a3: asks what is three arrows after a", "c>a d>b a>d b>c;a3:"}},
    {Task::additions, read_additions, {"a sum, digit by digit from the last one", "47+85:"}},
    {Task::fractions, read_fractions, {"a fraction to so many places, by long division", "3/7 to 3:"}},
};

}  // namespace

std::optional<Puzzle> read_question(const std::string& text) {
  for (const auto& w : kWorlds)
    if (Read found = w.read(Scanner(text))) {
      int length = int(found->answer.size()) + found->ends;
      return Puzzle{w.task, text + found->answer, {{int(text.size()), length, 0}}};
    }
  return {};
}

World world_of(Task task) {
  for (const auto& w : kWorlds)
    if (w.task == task) return w.world;
  return {"", ""};
}

std::vector<Task> main_tasks(const TaskMix& mix) {
  double largest = *std::max_element(mix.weight, mix.weight + kTasks);
  std::vector<Task> tasks;
  for (const auto& w : kWorlds)
    if (2 * mix.weight[int(w.task)] >= largest) tasks.push_back(w.task);
  return tasks;
}
