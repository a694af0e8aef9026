#include "slabs.cuh"

__global__ static void add_slabs_kernel(float* total, const float* partial, int slabs, int width) {
  int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= width) return;
  float sum = 0;
  for (int slab = 0; slab < slabs; ++slab) sum += partial[int64_t(slab) * width + i];
  total[i] += sum;
}

void add_slabs(float* total, const float* partial, int slabs, int width) {
  launch(add_slabs_kernel, blocks_for(width, 128), 128, 0, stream(), total, partial, slabs, width);
}
