// Typed questions: every answer of every generated puzzle is read back from the text before it.
#include "questions.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

TaskMix only(Task task) {
  TaskMix mix;
  mix.weight[int(task)] = 1;
  return mix;
}

std::string answer_to(const std::string& question) {
  std::optional<Puzzle> puzzle = read_question(question);
  return puzzle ? puzzle->text.substr(question.size()) : "none";
}

}  // namespace

TEST(Questions, TheTextBeforeAnAnswerGivesTheTaskAndTheAnswer) {
  for (int t = 0; t < kTasks; ++t)
    for (int longest : {48, 200})
      for (const Puzzle& puzzle : make_puzzles(only(Task(t)), Split::validation, 1, 300, longest))
        for (const Answer& answer : puzzle.answers) {
          std::string asked = puzzle.text.substr(0, size_t(answer.start));
          std::optional<Puzzle> read = read_question(asked);
          ASSERT_TRUE(read) << asked;
          EXPECT_EQ(read->task, puzzle.task);
          ASSERT_EQ(read->answers.size(), 1u);
          EXPECT_EQ(read->answers[0].start, answer.start);
          EXPECT_EQ(read->answers[0].length, answer.length) << asked;
          EXPECT_EQ(read->text, (asked + puzzle.text.substr(size_t(answer.start), size_t(answer.length)))) << asked;
        }
}

TEST(Questions, MayBeTypedByHand) {
  EXPECT_EQ(answer_to("0212?"), "2");
  EXPECT_EQ(answer_to("0212?1002?"), "2") << "1 is the answer that was typed, and 002 comes after it";
  EXPECT_EQ(answer_to("01?1?"), "0") << "the sum of nothing";
  EXPECT_EQ(answer_to("abb?"), "a");
  EXPECT_EQ(answer_to("a=1;b=0;a=0;a?"), "0");
  EXPECT_EQ(answer_to("need 2:+.?"), "more;");
  EXPECT_EQ(answer_to("need 2:+.?more;+?"), "done;");
  EXPECT_EQ(answer_to("state=47;state?"), "47.");
  EXPECT_EQ(answer_to("ball 2 of 3:13 12 ?"), "1");
  EXPECT_EQ(answer_to("c>a d>b a>d b>c;a3:"), "...c;");
  EXPECT_EQ(answer_to("47+85:"), "7+5+0=12 4+8+1=13 132.");
  EXPECT_EQ(answer_to("3/7 to 3:"), "4r2 2r6 8r4 0.428.");
}

TEST(Questions, WhatIsNoQuestionHasNoAnswer) {
  for (const char* text : {"",
                           "hello",
                           "?",
                           "02",
                           "021 ?",
                           "0212??",
                           "0a?",
                           "03?",
                           "a=1;b?",
                           "a=2;a?",
                           "a=1,a?",
                           "a=1;a?1",
                           "i=1;i?",
                           "need 0:?",
                           "need 2:+++?",
                           "need 2:+?less;",
                           "state=7;state?",
                           "state=47;w=1;state?",
                           "state=47;state?47",
                           "ball 4 of 3:12 ?",
                           "ball 1 of 2:12 ?",
                           "ball 1 of 3:21 ?",
                           "ball 1 of 3:14 ?",
                           "ball 1 of 3:12?",
                           "a>b;c1:",
                           "a>b b>a;a0:",
                           "a>b",
                           "47+8:",
                           "07+85:",
                           "7+5:",
                           "1234567890123+1234567890123:",
                           "7/3 to 3:",
                           "3/7 to 1:",
                           "3/7",
                           "0/7 to 3:",
                           "0212?\n"})
    EXPECT_EQ(answer_to(text), "none") << text;
}

TEST(Questions, AWorldsExampleIsAQuestionOfIt) {
  TaskMix all = parse_task_mix("all");
  std::vector<Task> tasks = main_tasks(all);
  EXPECT_EQ(tasks.size(), size_t(kTasks) - 1) << "all but stories";
  for (Task task : tasks) {
    std::optional<Puzzle> puzzle = read_question(world_of(task).example);
    ASSERT_TRUE(puzzle) << name_of(task);
    EXPECT_EQ(puzzle->task, task);
  }
}

TEST(Questions, AMixIsMainlyOfItsHeaviestTasks) {
  EXPECT_EQ(main_tasks(parse_task_mix("sums")), std::vector<Task>{Task::sums});
  EXPECT_EQ(main_tasks(parse_task_mix("sums=8,cups=4,memory=1")), (std::vector<Task>{Task::sums, Task::cups}));
  EXPECT_EQ(main_tasks(parse_task_mix("stories")), std::vector<Task>{});
  EXPECT_EQ(main_tasks(parse_task_mix("stories=9,sums=1")), std::vector<Task>{});
}
