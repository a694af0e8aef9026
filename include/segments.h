// One batch is a list of segments: training rows, reused prefixes, packed documents, prompt chunks and decoded tokens
// are all the same thing to attention, to rotary embedding and to the loss.
#pragma once

// A run of consecutive tokens of one document, computed together. Its rows see the document's earlier positions (the
// prefix), which were computed before and stand elsewhere, and each other, causally. Nothing crosses segments.
struct Segment {
  int row;        // its first row among the batch's rows
  int rows;       // how many
  int position;   // position in the document of its first row; positions [0, position) are its prefix
  int prefix_kv;  // key/value row of position 0; the prefix occupies [prefix_kv, prefix_kv + position)
  int own_kv;     // key/value row of `position`; its own rows occupy [own_kv, own_kv + rows)

  // The key/value row of position j.
  int kv_row(int j) const { return j < position ? prefix_kv + j : own_kv + (j - position); }
};
