// Copies to shared memory that a thread does not wait for at once, for the emulated CUDA
// runtime (cuda_runtime.h beside this): done when they are waited for, not before.
#pragma once

#include <stddef.h>

void __pipeline_memcpy_async(void *to, const void *from, size_t size, size_t fill = 0);
void __pipeline_commit();
void __pipeline_wait_prior(size_t later);
