// Frequencies of rotary embeddings (Su et al., arXiv:2104.09864), and their scaling for texts that
// are longer than those of the training: linear (arXiv:2306.15595) and YaRN (arXiv:2309.00071).
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct rope {
    size_t size;      // elements of a head that are rotated; even
    double base;      // of the frequencies
    double factor;    // positions are divided by it; 1: not scaled
    double magnitude; // cosines and sines are multiplied by it
    bool yarn;        // only low frequencies are divided by the factor
    // Of YaRN: pairs that turn at least `fast` times within `context` positions keep their
    // frequency, those that turn at most `slow` times are scaled, those between partly.
    size_t context;
    double fast, slow;
};

// Fills frequencies[size / 2] with the angle between neighbouring positions, in radians, of each
// pair.  `divisors`, as many, divide the frequencies (Llama 3); NULL: none.  Returns the factor of
// cosines and sines.
double rope_frequencies(double *frequencies, const struct rope *rope, const float *divisors);
