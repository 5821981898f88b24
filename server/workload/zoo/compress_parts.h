// Parts of compress.h: what its methods share.
#pragma once

#include "server/workload/zoo/compress.h"

// Fills `out->model`, `weights` and `factored` with the original, its layers factored where that
// saves weights.
MUST_CHECK enum status zoo_factor(struct zoo_compressed *out, const struct zoo_model *model,
                                  const struct zoo_weights *weights,
                                  const struct zoo_compression *how, struct error *err);

// The grid of each layer's first input over seeded inputs, for integers of 8 bits, affine, by the
// clipping of `how`; one grid for all layers with the same weights.  Scale 0: no convolution of the
// network is that layer.
MUST_CHECK enum status zoo_calibrate(struct zoo_grid *grids, struct device *device,
                                     const struct zoo_model *model,
                                     const struct zoo_weights *weights,
                                     const struct zoo_compression *how, struct error *err);
