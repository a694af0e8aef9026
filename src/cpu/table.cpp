// One instruction set's table.
#include "memory.h"
#include "tables.h"

namespace ISA {

#define ISA_TEXT_(x) #x
#define ISA_TEXT(x) ISA_TEXT_(x)
extern const Kernels kernels = {
    "cpu-" ISA_TEXT(ISA),
    "",
    sizeof(float),
    true,
    &kernels,
    take_host_floats,
    release_host_floats,
    available_memory,
    copy_bytes,
    copy_bytes,
    [] {},
    []() -> Graph* { return nullptr; },
    [](Graph*) {},
    [](Graph*, void (*body)(void*), void* context) { body(context); },
    copy,
    copy,
    matmul_forward,
    matmul_backward_input,
    matmul_backward_weight,
    pack_weight,
    matmul_packed,
    gather_rows,
    scatter_rows,
    scatter_add_rows,
    scatter_add_rows,  // sums in order, also where rows repeat
    zero,
    scale,
    add,
    sigmoid,
    bias_forward,
    bias_backward,
    rmsnorm_forward,
    rmsnorm_backward,
    qk_norm_rope_forward,
    qk_norm_rope_backward,
    attention_forward,
    attention_backward,
    head_gate_forward,
    head_gate_backward,
    swiglu_forward,
    swiglu_backward,
    residual_forward,
    carry_forward,
    concat_forward,
    concat_backward,
    gate_forward,
    gate_backward,
    cross_entropy,
    sample,
    sum_squares,
    adamw,
    blend,
    row_normalize,
    peak_fma,
    stream_read,
    stream_update,
};

}  // namespace ISA
