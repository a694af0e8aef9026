// The operations of one instruction set, as declared in kernels.h; table.cpp puts them into a table.
#pragma once
#include "kernels.h"

namespace ISA {
extern const Kernels kernels;
void matmul_forward(float* y, const float* x, const float* w, int rows, int in, int out);
void matmul_backward_input(float* dx, const float* dy, const float* w, int rows, int in, int out, bool accumulate);
void matmul_backward_weight(float* dw, const float* dy, const float* x, int rows, int in, int out);
void pack_weight(void* packed, const float* w, int in, int out, bool to_bf16);
void matmul_packed(float* y, const float* x, const void* packed, int rows, int in, int out, bool is_bf16);
void gather_rows(float* out, const float* in, const int* source, int rows, int width);
void scatter_rows(float* out, const float* in, const int* to, int rows, int width);
void scatter_add_rows(float* out, const float* in, const int* source, int rows, int width);
void embedding_backward(float* dembedding, const float* de, const int* token, int rows, int width);
void zero(float* x, int64_t n);
void scale(float* y, const float* x, float alpha, int64_t n);
void add(float* y, const float* x, int64_t n);
void sigmoid(float* y, const float* x, int64_t n);
void bias_forward(float* y, const float* bias, int rows, int width);
void bias_backward(float* dbias, const float* dy, int rows, int width);
void rmsnorm_forward(float* y, float* rrms, const float* x, const float* gain, int rows, int width, float eps);
void rmsnorm_backward(float* dx, float* dgain, const float* dy, const float* x, const float* gain, const float* rrms,
                      int rows, int width);
void qk_norm_rope_forward(float* q, float* k, float* v, float* rrms, const float* qkv, const float* q_gain,
                          const float* k_gain, const float* rope, const Segment* segments, int segment_count, int heads,
                          int kv_heads, int head_dim, float eps);
void qk_norm_rope_backward(float* dqkv, float* dq_gain, float* dk_gain, const float* dq, const float* dk,
                           const float* dv, const float* qkv, const float* rrms, const float* q_gain,
                           const float* k_gain, const float* rope, const Segment* segments, int segment_count,
                           int heads, int kv_heads, int head_dim);
void attention_forward(float* y, float* row_max, float* row_scale, const float* q, const float* k, const float* v,
                       const Segment* segments, int segment_count, int heads, int kv_heads, int head_dim, int window);
void attention_backward(float* dq, float* dk, float* dv, const float* dy, const float* y, const float* q,
                        const float* k, const float* v, const float* row_max, const float* row_scale,
                        const Segment* segments, int segment_count, int heads, int kv_heads, int head_dim, int window);
void head_gate_forward(float* y, const float* x, const float* z, int rows, int heads, int head_dim);
void head_gate_backward(float* dx, float* dz, const float* dy, const float* x, const float* z, int rows, int heads,
                        int head_dim);
void swiglu_forward(float* y, const float* gate_up, int rows, int ffn);
void swiglu_backward(float* dgate_up, const float* dy, const float* gate_up, int rows, int ffn);
void residual_forward(float* y, const float* x, const float* branch, float alpha, int64_t n);
void carry_forward(float* out, const float* h, const int* source, const uint64_t* noise_key, float delta, int rows,
                   int width);
void concat_forward(float* pair, const float* e, const int* index, const float* h, int rows, int width);
void concat_backward(float* de, const int* index, float* dh, const float* dpair, int rows, int width);
void gate_forward(float* f, const float* a, const float* s, const int* index, int rows, int width);
void gate_backward(float* da, float* dz, const float* df, const float* a, const float* s, const int* index, int rows,
                   int width);
void cross_entropy(double* loss, double* z_squared, int* best, float* logits, const int* target, const float* weight,
                   float z_loss, int rows, int vocab);
void sum_squares(double* sum, const float* x, int64_t n);
void sample(int* token, const float* logits, int rows, int vocab, const Sampling& sampling, const uint64_t* key);
void copy(float* y, const float* x, int64_t n);
void adamw(float* p, float* m, float* v, const float* g, int64_t n, AdamStep step);
void blend(float* y, const float* x, float alpha, float beta, int64_t n);
void row_normalize(float* x, float* v, float beta2, float eps, int rows, int width);
double peak_fma();
float stream_read(const float* x, int64_t n);
void stream_update(float* a, float* b, float* c, const float* d, int64_t n);
}  // namespace ISA
