// Distillation loss of a student beside its teacher (Hinton et al., arXiv:1503.02531):
//
//   L = alpha * T^2 * KL(softmax(t / T) || softmax(s / T)) + (1 - alpha) * CE(argmax t, softmax(s))
//
// T^2 keeps the first term's gradients, which shrink by 1 / T^2, as large at any temperature.
#ifndef INFERSTAT_SERVER_WORKLOAD_ZOO_DISTILLATION_H
#define INFERSTAT_SERVER_WORKLOAD_ZOO_DISTILLATION_H

#include <stddef.h>

struct zoo_distillation {
    double temperature; // > 0
    double alpha;       // 0..1
};

// L of one position's logits, of `classes` >= 1 each, `stride` floats apart.  Logits of any finite
// size give a finite loss.
double zoo_distillation_loss(const struct zoo_distillation *how, const float *teacher,
                             const float *student, size_t classes, size_t stride);

// The first largest of n values that are `stride` apart.
size_t zoo_top1(const float *values, size_t n, size_t stride);

#endif
