# Imported targets for a LibTorch folder, without find_package(Torch): that package needs a CUDA toolkit even
# where none is used, prints pages of notes, and adds flags of its own.
#
# In:  Torch_DIR (the folder with TorchConfig.cmake, or LibTorch's root), GPUTRAIN_CUDA
# Out: torch::cpu and, with GPUTRAIN_CUDA, torch::cuda; GPUTRAIN_TORCH_VERSION, GPUTRAIN_TORCH_LIB

set(Torch_DIR "" CACHE PATH "folder with TorchConfig.cmake (…/torch/share/cmake/Torch), or LibTorch's root")
if(NOT Torch_DIR)
  message(FATAL_ERROR "Torch_DIR is not set. scripts/quickstart fetches LibTorch and sets it; by hand: "
                      "cmake --preset release -DTorch_DIR=/path/to/libtorch/share/cmake/Torch")
endif()

find_path(GPUTRAIN_TORCH_INCLUDE ATen/core/Tensor.h NO_DEFAULT_PATH
  PATHS ${Torch_DIR}/include ${Torch_DIR}/../../../include)
find_library(GPUTRAIN_TORCH_CPU torch_cpu NO_DEFAULT_PATH PATHS ${Torch_DIR}/lib ${Torch_DIR}/../../../lib)
if(NOT GPUTRAIN_TORCH_INCLUDE OR NOT GPUTRAIN_TORCH_CPU)
  message(FATAL_ERROR "Torch_DIR=${Torch_DIR} holds no LibTorch (include/ATen and lib/libtorch_cpu.so)")
endif()
get_filename_component(GPUTRAIN_TORCH_LIB ${GPUTRAIN_TORCH_CPU} DIRECTORY)
get_filename_component(GPUTRAIN_TORCH_LIB ${GPUTRAIN_TORCH_LIB} REALPATH)

find_file(GPUTRAIN_TORCH_VERSION_H NO_DEFAULT_PATH NAMES
  torch/headeronly/version.h             # from 2.10 on
  torch/csrc/api/include/torch/version.h
  PATHS ${GPUTRAIN_TORCH_INCLUDE})
if(NOT GPUTRAIN_TORCH_VERSION_H)
  message(FATAL_ERROR "Torch_DIR=${Torch_DIR} has no version.h among its headers; is the folder whole?")
endif()
file(STRINGS ${GPUTRAIN_TORCH_VERSION_H} version_lines REGEX "#define TORCH_VERSION_M")
string(REGEX MATCH "MAJOR ([0-9]+)" _ "${version_lines}")
set(version_major ${CMAKE_MATCH_1})
string(REGEX MATCH "MINOR ([0-9]+)" _ "${version_lines}")
set(GPUTRAIN_TORCH_VERSION ${version_major}.${CMAKE_MATCH_1})
if(GPUTRAIN_TORCH_VERSION VERSION_LESS 2.9)
  message(FATAL_ERROR "Torch_DIR=${Torch_DIR} is LibTorch ${GPUTRAIN_TORCH_VERSION}; 2.9 or newer is needed")
endif()

function(add_torch_library target file)
  add_library(${target} SHARED IMPORTED)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${GPUTRAIN_TORCH_LIB}/${file})
endfunction()

add_torch_library(torch::c10 libc10.so)
add_torch_library(torch::torch_cpu libtorch_cpu.so)
add_library(torch::cpu INTERFACE IMPORTED)
target_include_directories(torch::cpu SYSTEM INTERFACE
  ${GPUTRAIN_TORCH_INCLUDE} ${GPUTRAIN_TORCH_INCLUDE}/torch/csrc/api/include)
# Umbrella headers of ATen, which cost 10 s a file, become compile errors.
target_compile_definitions(torch::cpu INTERFACE AT_PER_OPERATOR_HEADERS TORCH_ASSERT_ONLY_METHOD_OPERATORS)
target_link_libraries(torch::cpu INTERFACE torch::torch_cpu torch::c10)

if(GPUTRAIN_CUDA)
  if(NOT EXISTS ${GPUTRAIN_TORCH_LIB}/libtorch_cuda.so)
    message(FATAL_ERROR "Torch_DIR=${Torch_DIR} is a LibTorch without CUDA; configure with -DGPUTRAIN_CUDA=OFF")
  endif()
  find_package(CUDAToolkit REQUIRED)
  # The libraries that LibTorch was made with lie beside it when it comes from wheels. They go before those of
  # an installed toolkit, which may be older than LibTorch needs (LibTorch 2.10 with a CUDA 12.4 toolkit).
  file(GLOB GPUTRAIN_CUDA_LIBRARY_DIRS ${GPUTRAIN_TORCH_LIB}/../../nvidia/*/lib)
  find_library(GPUTRAIN_CUDART NAMES libcudart.so.13 libcudart.so.12 NO_DEFAULT_PATH
    PATHS ${GPUTRAIN_CUDA_LIBRARY_DIRS})
  if(NOT GPUTRAIN_CUDART)
    set(GPUTRAIN_CUDART CUDA::cudart)
    set(GPUTRAIN_CUDA_LIBRARY_DIRS ${CUDAToolkit_LIBRARY_DIR})
  endif()
  add_torch_library(torch::c10_cuda libc10_cuda.so)
  add_torch_library(torch::torch_cuda libtorch_cuda.so)
  add_library(torch::cuda INTERFACE IMPORTED)
  target_include_directories(torch::cuda SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
  # libtorch_cuda registers its operators when it is loaded; no symbol of ours asks for it.
  target_link_libraries(torch::cuda INTERFACE torch::cpu torch::c10_cuda
    -Wl,--no-as-needed ${GPUTRAIN_TORCH_LIB}/libtorch_cuda.so ${GPUTRAIN_CUDART} -Wl,--as-needed)
endif()
