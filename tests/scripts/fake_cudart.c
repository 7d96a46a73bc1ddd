/* As much of a CUDA runtime as fake_trainer.c and scripts/bench/host_waits.c call. Nothing is ever done yet. */
#include <stddef.h>

enum { kNotReady = 600 };
typedef struct {
  unsigned x, y, z;
} Dim3;

int __cudaLaunchKernel(void *kernel, Dim3 grid, Dim3 block, void **arguments, size_t shared, void *stream) {
  (void)kernel, (void)grid, (void)block, (void)arguments, (void)shared, (void)stream;
  return 0;
}
int cudaEventRecord(void *event, void *stream) {
  (void)event, (void)stream;
  return 0;
}
int cudaEventSynchronize(void *event) {
  (void)event;
  return 0;
}
int cudaEventQuery(void *event) {
  (void)event;
  return kNotReady;
}
int cudaStreamSynchronize(void *stream) {
  (void)stream;
  return 0;
}
int cudaStreamQuery(void *stream) {
  (void)stream;
  return kNotReady;
}
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream) {
  (void)to, (void)from, (void)bytes, (void)kind, (void)stream;
  return 0;
}
/* Memory is what its first byte says: 'p' is pageable, all else the device's. */
int cudaPointerGetAttributes(void *attributes, const void *pointer) {
  *(int *)attributes = *(const char *)pointer == 'p' ? 0 : 2;
  return 0;
}
int cudaGetLastError(void) {
  return 0;
}
