// Elementary functions in double precision with the same bits on every machine: made of multiplications, additions and
// integer operations only (no libm, no fma). Errors stay below 2 units in the last place; of sine and cosine below 3
// where |x| passes 8192.
#pragma once

double exact_exp(double x);
double exact_log(double x);  // of 0: −inf; of negative numbers and NaN: NaN
double exact_sin(double x);  // |x| below 2²⁰
double exact_cos(double x);

// Rotary angles: row p of `positions` holds cos(p·θ_i), i < d/2, then sin(p·θ_i), with θ_i = theta^(−2i/d). positions ×
// d
void rope_table(float* table, int positions, int head_dim, float theta);
