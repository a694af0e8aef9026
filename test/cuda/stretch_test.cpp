// The shares of blocks in elements and rows.
#include "stretch.h"

#include <gtest/gtest.h>

namespace {

// Each element is in one block's share, and in order.
void expect_whole(int64_t rows, int64_t width, int length) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
  int64_t row = 0, next = 0;
  for (unsigned block = 0; block < rows * stretches_in(width, length); ++block) {
    Stretch s = stretch_of(block, width, length);
    ASSERT_EQ(s.row, row);
    ASSERT_EQ(s.first, next);
    ASSERT_GT(s.count, 0);
    ASSERT_LE(s.count, length);
    next += s.count;
    if (next == width) ++row, next = 0;
  }
  EXPECT_EQ(row, rows);
}

TEST(CudaStretch, EachElementIsOneBlocks) {
  for (int64_t width : {1, 511, 512, 513, 1024, 5000})
    for (int64_t rows : {1, 7}) expect_whole(rows, width, 512);
}

TEST(CudaStretch, RowsAndElementsGoBeyond32Bits) {
  Stretch last = stretch_of(0x7ffffffe, int64_t(0x7fffffff) * 512 - 5, 512);
  EXPECT_EQ(last.row, 0);
  EXPECT_EQ(last.first, int64_t(0x7ffffffe) * 512);
  EXPECT_EQ(last.count, 507);
  last = stretch_of(0x7ffffffe, 512, 512);
  EXPECT_EQ(last.row, 0x7ffffffe);
  last = stretch_of(2'000'000'000, 5 * 1024, 1024);  // of 400 million rows, 2 · 10¹² elements
  EXPECT_EQ(last.row, 400'000'000);
  EXPECT_EQ(last.first, 0);
}

}  // namespace
