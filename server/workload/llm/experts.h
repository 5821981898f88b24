// Routing of a mixture of experts (Shazeer et al., arXiv:1701.06538): each row of activations goes
// to the experts with the highest scores, whose results are weighted.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Computes the weights of a row's `count` experts: the softmax over the `used` highest `scores`,
// and 0 for the others.  Of equal scores the first counts as higher.  1 <= used <= count.
void experts_weigh(float *weights, const float *scores, size_t count, size_t used);

// Lists the rows of `weights` (rows, count) in which `expert` has a weight, in order, and these
// weights.  Returns their number.
size_t experts_rows(uint32_t *out_rows, float *out_weights, const float *weights, size_t rows,
                    size_t count, size_t expert);
