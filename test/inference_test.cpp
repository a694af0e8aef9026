// What a program that links the library begins with.
#include "inference.h"

#include <type_traits>

#include "program.h"

namespace {

// Its decoder refers to what lies in it.
static_assert(!std::is_copy_constructible_v<Inference> && !std::is_move_constructible_v<Inference>);
static_assert(!std::is_copy_assignable_v<Inference> && !std::is_move_assignable_v<Inference>);

class InferenceOfAModel : public testing::Test {
 protected:
  InferenceOfAModel() { bench_.train(bench_.tiny("out", 4)); }
  std::string mistake(const InferenceOptions& options) {
    return message_of([&] { Inference(model_, options); });
  }
  Bench bench_;
  std::string model_ = bench_ / "out";
};

Inference opened(const std::string& path) { return Inference(path); }

TEST_F(InferenceOfAModel, RefusesADeviceAndANumberOfSequencesThatThereCannotBe) {
  EXPECT_EQ(mistake({.device = "gpu"}), "there is no device gpu: auto, cpu or cuda");
  EXPECT_EQ(mistake({.device = ""}), "there is no device : auto, cpu or cuda");
  for (int sequences : {0, -1}) EXPECT_TRUE(has(mistake({.sequences = sequences}), "sequences continues nothing"));
  EXPECT_EQ(mistake({}), "");
}

TEST_F(InferenceOfAModel, CanBeReturnedByAFunctionAndTwoOfThemLiveSideBySide) {
  Inference one = opened(model_), other = opened(model_);
  Generation g;
  g.tokens = 8;
  g.mode = one.best_mode();
  EXPECT_EQ(one.continue_text("a", g).tokens, other.continue_text("a", g).tokens);
  EXPECT_EQ(one.score_text("a", "bc", g.mode), other.score_text("a", "bc", g.mode));
}

TEST_F(InferenceOfAModel, IsAsGoodAsBeforeWhereSayingFailed) {
  Inference model(model_);
  Generation g;
  g.tokens = 8;
  g.mode = model.best_mode();
  std::string text = model.continue_text("a", g).text;
  EXPECT_EQ(message_of([&] { model.continue_text("a", g, [](int, const std::string&) { fail("enough"); }); }),
            "enough");
  EXPECT_EQ(model.continue_text("a", g).text, text);
}

}  // namespace
