# Compiler and linker settings shared by every target of the project.
#
#   inferstat_room(NAME SOURCES... [LINK LIBS...])  a static library of hand-written code
#   inferstat_program(NAME SOURCES... [LINK LIBS...])  an executable in bin/ of the build folder

# A plain `cmake -S . -B build` is a release that can be debugged.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel"
      FORCE)
endif()

include(CheckPIESupported)
check_pie_supported()

set(inferstat_warnings
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion
    -Wstrict-prototypes -Wmissing-prototypes -Wcast-qual -Wwrite-strings -Wvla -Wundef
    -Wformat=2 -Wswitch-enum -Wnull-dereference)

add_library(inferstat_options INTERFACE)
target_include_directories(inferstat_options INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_definitions(inferstat_options INTERFACE
                           _GNU_SOURCE INFERSTAT_VERSION="${PROJECT_VERSION}")
target_compile_options(inferstat_options INTERFACE
                       "$<$<COMPILE_LANGUAGE:C>:${inferstat_warnings}>"
                       $<$<AND:$<BOOL:${INFERSTAT_WERROR}>,$<NOT:$<COMPILE_LANGUAGE:CUDA>>>:-Werror>
                       -ffunction-sections -fdata-sections -fno-math-errno)
target_link_options(inferstat_options INTERFACE -Wl,--gc-sections -Wl,-z,relro,-z,now)

# What the sanitizers and the fuzzer want of every file, also of generated ones.
add_library(inferstat_instrumented INTERFACE)
target_link_libraries(inferstat_options INTERFACE inferstat_instrumented)
if(INFERSTAT_SANITIZE)
  target_compile_options(inferstat_instrumented INTERFACE
                         -fsanitize=${INFERSTAT_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  target_link_options(inferstat_instrumented INTERFACE -fsanitize=${INFERSTAT_SANITIZE})
  if(INFERSTAT_SANITIZE MATCHES "undefined")
    target_compile_options(inferstat_instrumented INTERFACE -fno-sanitize-recover=undefined)
  endif()
else()
  target_compile_options(inferstat_options INTERFACE
                         -fstack-protector-strong
                         $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
                         $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
endif()
if(INFERSTAT_FUZZ)
  # Coverage feedback everywhere; only the targets themselves link libFuzzer.
  target_compile_options(inferstat_instrumented INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Assertions guard against our own bugs and stay on in releases: CMake's own flags would
# switch them off, what the user asks for is the user's.
foreach(language C CXX)
  string(STRIP "${CMAKE_${language}_FLAGS_RELWITHDEBINFO_INIT}" preset)
  if(CMAKE_${language}_FLAGS_RELWITHDEBINFO STREQUAL preset)
    set(CMAKE_${language}_FLAGS_RELWITHDEBINFO "-O2 -g")
  endif()
endforeach()

function(inferstat_room name)
  cmake_parse_arguments(ROOM "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ROOM_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC inferstat_options ${ROOM_LINK})
endfunction()

function(inferstat_program name)
  cmake_parse_arguments(PROGRAM "" "" "LINK" ${ARGN})
  add_executable(${name} ${PROGRAM_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE inferstat_options ${PROGRAM_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
endfunction()
