# gputrain_room(NAME [TORCH] [CUDA] [DEPENDS rooms...] [LINK targets...])
#
# The library gputrain_NAME from src/NAME and, with GPUTRAIN_TESTS, the program test_NAME from tests/NAME.
# TORCH: sees LibTorch's headers. CUDA: has files for CUDA (*_cuda.cpp, *_cuda.cu) and a twin for builds without
# it (*_no_cuda.cpp); one of the two is linked. Sources are found by name, so that a new component is one file.
#
# Parsing LibTorch's and Catch2's headers is most of a file's compile time, so they are precompiled: once for the
# rooms and once for their tests, by the first target that asks.
set(gputrain_torch_headers <ATen/core/Tensor.h> <ATen/ops/zeros.h> <c10/core/GradMode.h>)
function(gputrain_precompile kind target)
  get_property(first GLOBAL PROPERTY gputrain_precompiled_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY gputrain_precompiled_${kind} ${target})
  endif()
endfunction()

function(gputrain_room name)
  cmake_parse_arguments(ROOM "TORCH;CUDA" "" "DEPENDS;LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS src/${name}/*.cpp)
  set(without_cuda ${sources})
  list(FILTER without_cuda INCLUDE REGEX "_no_cuda\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_cuda\\.cpp$")
  if(ROOM_CUDA AND GPUTRAIN_CUDA)
    file(GLOB with_cuda CONFIGURE_DEPENDS src/${name}/*_cuda.cpp src/${name}/*_cuda.cu)
    list(REMOVE_ITEM with_cuda ${without_cuda})
    list(APPEND sources ${with_cuda})
  else()
    list(APPEND sources ${without_cuda})
  endif()

  add_library(gputrain_${name} STATIC ${sources})
  target_include_directories(gputrain_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(gputrain_${name} PRIVATE gputrain_options PUBLIC ${ROOM_LINK})
  foreach(room IN LISTS ROOM_DEPENDS)
    target_link_libraries(gputrain_${name} PUBLIC gputrain_${room})
  endforeach()
  if(ROOM_TORCH)
    target_link_libraries(gputrain_${name} PUBLIC torch::cpu)
    gputrain_precompile(torch gputrain_${name} ${gputrain_torch_headers})
  endif()
  if(ROOM_CUDA AND GPUTRAIN_CUDA)
    target_link_libraries(gputrain_${name} PUBLIC ${GPUTRAIN_CUDART})
    target_include_directories(gputrain_${name} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
    if(ROOM_TORCH)
      target_link_libraries(gputrain_${name} PUBLIC torch::cuda)
    endif()
  endif()

  if(GPUTRAIN_TESTS)
    gputrain_tests(${name})
  endif()
endfunction()

# The program test_NAME; each of its cases is a test of CTest. A case that the machine cannot run prints
# `gputrain-test-skipped`; Catch2's exit codes cannot tell it, since some versions end with the number of failures.
function(gputrain_tests name)
  file(GLOB sources CONFIGURE_DEPENDS tests/${name}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources} ${gputrain_sanitizer_settings})
  target_include_directories(test_${name} PRIVATE tests)
  target_compile_definitions(test_${name} PRIVATE
    GPUTRAIN_BINARY_PATH="${PROJECT_BINARY_DIR}/bin/gputrain" GPUTRAIN_SOURCE_PATH="${PROJECT_SOURCE_DIR}")
  target_link_libraries(test_${name} PRIVATE gputrain_options gputrain_${name} gputrain_test_main)
  if(ROOM_TORCH)
    gputrain_precompile(torch_tests test_${name} ${gputrain_torch_headers} ${PROJECT_SOURCE_DIR}/tests/support/catch.h)
    if(GPUTRAIN_CUDA)
      target_link_libraries(test_${name} PRIVATE torch::cuda)
    endif()
  else()
    gputrain_precompile(tests test_${name} ${PROJECT_SOURCE_DIR}/tests/support/catch.h)
  endif()
  set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  catch_discover_tests(test_${name} TEST_PREFIX "${name}:" DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT 300 SKIP_REGULAR_EXPRESSION "gputrain-test-skipped" LABELS ${name}
      ENVIRONMENT OMP_NUM_THREADS=1)  # tests run side by side, and threads that spin would slow the others
endfunction()

function(gputrain_fuzzer target source room)
  add_executable(${target} ${source})
  target_compile_options(${target} PRIVATE -fsanitize=fuzzer)
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${target} PRIVATE gputrain_options gputrain_${room})
endfunction()
