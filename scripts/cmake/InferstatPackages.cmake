# The outside libraries, each with the one room that may use it.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq>=4.3)               # common/wire/socket*.c
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium>=1.0.18)      # common/wire/listener/, vocabularies
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8>=10.34)       # server/workload/llm/tokenizer/pre_tokenizer.c
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c>=1.3) # common/wire/codec*
pkg_check_modules(SQLITE3 REQUIRED IMPORTED_TARGET sqlite3>=3.37)         # common/store, collector
pkg_check_modules(NCURSESW REQUIRED IMPORTED_TARGET ncursesw)             # client/tui/screen.c
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson>=2.13)         # client/cli/commands/llama_bench.c
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd>=0.9.71) # server/http/http_server.c
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl>=7.87)           # server/http/http_client.c
find_program(PROTOC_C protoc-c REQUIRED)

# nvcc, for server/device/cuda: AUTO takes it where it is there.  The sanitizers and the
# fuzzer do without: the kernels' code is tested on an emulated runtime under them.
set(INFERSTAT_WITH_CUDA OFF)
if(INFERSTAT_CUDA STREQUAL "ON")
  set(INFERSTAT_WITH_CUDA ON)
elseif(INFERSTAT_CUDA STREQUAL "AUTO" AND NOT INFERSTAT_SANITIZE AND NOT INFERSTAT_FUZZ)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(INFERSTAT_WITH_CUDA ON)
  endif()
endif()
if(INFERSTAT_WITH_CUDA)
  set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "Devices to compile for")
  enable_language(CUDA)
endif()
message(STATUS "CUDA back end: ${INFERSTAT_WITH_CUDA}")

# NVTX's headers, for server/device/cuda/range.c where INFERSTAT_NVTX asks for ranges, and
# for their test where they are found.
find_path(NVTX_INCLUDE nvtx3/nvToolsExt.h
          HINTS ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} /usr/local/cuda/include)
if(INFERSTAT_NVTX AND NOT NVTX_INCLUDE)
  message(FATAL_ERROR "INFERSTAT_NVTX: nvtx3/nvToolsExt.h is not there (set NVTX_INCLUDE)")
endif()

# inferstat_protobuf(TARGET FILE.proto): C code from a .proto, without our warnings.
function(inferstat_protobuf target proto)
  get_filename_component(base "${proto}" NAME_WE)
  get_filename_component(folder "${proto}" DIRECTORY)
  set(out "${CMAKE_CURRENT_BINARY_DIR}/generated/proto")
  file(MAKE_DIRECTORY "${out}")
  add_custom_command(
    OUTPUT "${out}/${base}.pb-c.c" "${out}/${base}.pb-c.h"
    COMMAND "${PROTOC_C}" "--proto_path=${folder}" "--c_out=${out}" "${proto}"
    DEPENDS "${proto}"
    VERBATIM)
  add_library(${target} STATIC "${out}/${base}.pb-c.c" "${out}/${base}.pb-c.h")
  target_include_directories(${target} SYSTEM PUBLIC "${CMAKE_CURRENT_BINARY_DIR}/generated")
  target_link_libraries(${target} PUBLIC PkgConfig::PROTOBUF_C PRIVATE inferstat_instrumented)
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
endfunction()
