// Memory that the emulated CUDA runtime (cuda_runtime.h) gave, by its address and size.
#pragma once

#include <stdlib.h>
#include <string.h>

#include <iterator>
#include <map>

constexpr size_t MEMORY_MAX = (size_t)1 << 40; // more is never asked of the host

class memory_map
{
  public:
    // How many bytes of the allocation that `memory` lies in follow; 0: it lies in none.
    size_t rest_of(const void *memory) const
    {
        const char *at = static_cast<const char *>(memory);
        const auto next = sizes.upper_bound(at);
        if (next == sizes.begin())
            return 0;
        const auto &[begin, size] = *std::prev(next);
        return at < begin + size ? size - (size_t)(at - begin) : 0;
    }

    // NULL: out of memory.
    void *allocate(size_t size)
    {
        void *memory = nullptr;
        if (size == 0 || size > MEMORY_MAX || posix_memalign(&memory, 4096, size) != 0)
            return nullptr;
        memset(memory, 0xa5, size); // contents are undefined
        sizes[static_cast<const char *>(memory)] = size;
        return memory;
    }

    void release(void *memory)
    {
        sizes.erase(static_cast<const char *>(memory));
        free(memory);
    }

  private:
    std::map<const char *, size_t> sizes;
};
