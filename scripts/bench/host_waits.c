/* Preloaded into a program that uses the CUDA runtime as a shared library: writes a JSON line for each call by which the
 * host may wait for the device to the file that HOST_WAITS_FILE names. For scripts/bench/host_waits, which builds it with
 *   cc -shared -fPIC -O2 -pthread host_waits.c -o host_waits.so -ldl
 *
 * name      the function; cudaMemcpyAsync only where the host's side is pageable and the call waits
 * start, end     seconds since 1970
 * thread
 * ready     true: what it waits for was done before the call, so it did not wait; null: not known
 * launches  kernels, copies and graphs that the program had given to the device by then
 * behind    of these, given after what it waits for; null: not known
 *
 * {"name": "launch"} is the first of them after such a call. Libraries with a CUDA runtime of their own inside (cuDNN,
 * cuBLAS) are not seen. The runtime's types are declared here, so that building it needs no CUDA.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef int Status; /* cudaError_t */
typedef void *Stream;
typedef void *Event;
typedef struct {
  unsigned x, y, z;
} Dim3;

enum { kSuccess = 0, kHostToDevice = 1, kDeviceToHost = 2, kDefault = 4 };
enum { kUnregistered = 0, kHost = 1, kDevice = 2, kManaged = 3 }; /* kinds of memory */
enum { kStagedAtOnce = 64 << 10 }; /* a longer copy from pageable memory goes in pieces and waits for them */
enum { kEvents = 4096 };

static atomic_llong launches;
static atomic_int launch_is_news; /* a wait was written since the last launch */
static FILE *out;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t opened = PTHREAD_ONCE_INIT;
static __thread int inside; /* calls of the runtime among its own functions, and ours, are not the program's */

/* Where each event was recorded; open addressing, never emptied: programs reuse their events. */
static struct {
  Event event;
  long long launches;
} recorded[kEvents];

static void open_file(void) {
  const char *path = getenv("HOST_WAITS_FILE");
  out = path ? fopen(path, "a") : NULL;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *original(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (found == NULL) {
    fprintf(stderr, "host_waits: the program's CUDA runtime has no %s\n", name);
    abort();
  }
  return found;
}

/* Calls the runtime's function of the same name. */
#define ORIGINAL(function)                                                    \
  static __typeof__(&function) real_##function;                               \
  if (real_##function == NULL) real_##function = (__typeof__(&function))original(#function)

enum { kNo = 0, kYes = 1, kUnknown = -1 };

static const char *ready_text(int ready) {
  return ready == kUnknown ? "null" : ready == kYes ? "true" : "false";
}

static void write_call(const char *name, double start, int ready, long long behind) {
  const double end = now();
  pthread_once(&opened, open_file);
  if (out == NULL) return;
  char behind_text[32] = "null";
  if (behind >= 0) snprintf(behind_text, sizeof behind_text, "%lld", behind);
  pthread_mutex_lock(&mutex);
  fprintf(out,
          "{\"name\": \"%s\", \"start\": %.6f, \"end\": %.6f, \"thread\": %ld, \"ready\": %s, \"launches\": %lld, "
          "\"behind\": %s}\n",
          name, start, end, (long)syscall(SYS_gettid), ready_text(ready), (long long)atomic_load(&launches),
          behind_text);
  fflush(out);
  pthread_mutex_unlock(&mutex);
  atomic_store(&launch_is_news, 1);
}

static void count_launch(void) {
  atomic_fetch_add(&launches, 1);
  if (!atomic_exchange(&launch_is_news, 0)) return;
  write_call("launch", now(), kUnknown, -1);
  atomic_store(&launch_is_news, 0);
}

static size_t slot_of(Event event) {
  size_t slot = ((uintptr_t)event >> 4) * 0x9E3779B97F4A7C15ull % kEvents;
  for (size_t tried = 0; tried < kEvents; ++tried, slot = (slot + 1) % kEvents) {
    if (recorded[slot].event == event || recorded[slot].event == NULL) return slot;
  }
  return kEvents;
}

static void note_record(Event event) {
  pthread_mutex_lock(&mutex);
  const size_t slot = slot_of(event);
  if (slot < kEvents) {
    recorded[slot].event = event;
    recorded[slot].launches = atomic_load(&launches);
  }
  pthread_mutex_unlock(&mutex);
}

static long long launched_behind(Event event) {
  pthread_mutex_lock(&mutex);
  const size_t slot = slot_of(event);
  const long long behind =
      slot < kEvents && recorded[slot].event ? atomic_load(&launches) - recorded[slot].launches : -1;
  pthread_mutex_unlock(&mutex);
  return behind;
}

Status cudaEventQuery(Event event);
Status cudaStreamQuery(Stream stream);
Status cudaPointerGetAttributes(void *attributes, const void *pointer);
Status cudaGetLastError(void);

static int is_ready(Status answer) {
  if (answer == kSuccess) return kYes;
  ORIGINAL(cudaGetLastError);
  real_cudaGetLastError(); /* "not ready" would stay behind as an error */
  return kNo;
}

/* Waits for the device. */

Status cudaEventSynchronize(Event event) {
  ORIGINAL(cudaEventSynchronize);
  ORIGINAL(cudaEventQuery);
  if (inside) return real_cudaEventSynchronize(event);
  inside = 1;
  const long long behind = launched_behind(event);
  const int ready = is_ready(real_cudaEventQuery(event));
  const double start = now();
  const Status status = real_cudaEventSynchronize(event);
  inside = 0;
  write_call("cudaEventSynchronize", start, ready, behind);
  return status;
}

Status cudaStreamSynchronize(Stream stream) {
  ORIGINAL(cudaStreamSynchronize);
  ORIGINAL(cudaStreamQuery);
  if (inside) return real_cudaStreamSynchronize(stream);
  inside = 1;
  const int ready = is_ready(real_cudaStreamQuery(stream));
  const double start = now();
  const Status status = real_cudaStreamSynchronize(stream);
  inside = 0;
  write_call("cudaStreamSynchronize", start, ready, 0);
  return status;
}

/* A function that may wait, with nothing queued behind when it does. */
#define WAITS(function, parameters, arguments)                                \
  Status function parameters {                                                \
    ORIGINAL(function);                                                       \
    if (inside) return real_##function arguments;                             \
    inside = 1;                                                               \
    const double start = now();                                               \
    const Status status = real_##function arguments;                          \
    inside = 0;                                                               \
    write_call(#function, start, kUnknown, 0);                                \
    return status;                                                            \
  }

WAITS(cudaDeviceSynchronize, (void), ())
WAITS(cudaMemcpy, (void *to, const void *from, size_t bytes, int kind), (to, from, bytes, kind))
WAITS(cudaMemset, (void *to, int value, size_t bytes), (to, value, bytes))
WAITS(cudaMemcpyToSymbol, (const void *symbol, const void *from, size_t bytes, size_t offset, int kind),
      (symbol, from, bytes, offset, kind))

/* These may wait within the driver; the script counts them apart. */
WAITS(cudaMalloc, (void **pointer, size_t bytes), (pointer, bytes))
WAITS(cudaFree, (void *pointer), (pointer))
WAITS(cudaHostAlloc, (void **pointer, size_t bytes, unsigned flags), (pointer, bytes, flags))
WAITS(cudaMallocHost, (void **pointer, size_t bytes), (pointer, bytes))
WAITS(cudaFreeHost, (void *pointer), (pointer))
WAITS(cudaHostRegister, (void *pointer, size_t bytes, unsigned flags), (pointer, bytes, flags))

/* Do not wait, but are told and counted apart. */
WAITS(cudaEventQuery, (Event event), (event))
WAITS(cudaStreamQuery, (Stream stream), (stream))

/* Work for the device. */

#define LAUNCHES(function, parameters, arguments)                             \
  Status function parameters {                                                \
    ORIGINAL(function);                                                       \
    if (!inside) count_launch();                                              \
    return real_##function arguments;                                         \
  }

LAUNCHES(__cudaLaunchKernel, (void *kernel, Dim3 grid, Dim3 block, void **arguments, size_t shared, Stream stream),
         (kernel, grid, block, arguments, shared, stream))
LAUNCHES(cudaLaunchKernel, (const void *kernel, Dim3 grid, Dim3 block, void **arguments, size_t shared, Stream stream),
         (kernel, grid, block, arguments, shared, stream))
LAUNCHES(cudaLaunchKernelExC, (const void *config, const void *kernel, void **arguments), (config, kernel, arguments))
LAUNCHES(cudaGraphLaunch, (void *graph, Stream stream), (graph, stream))
LAUNCHES(cudaMemsetAsync, (void *to, int value, size_t bytes, Stream stream), (to, value, bytes, stream))

Status cudaEventRecord(Event event, Stream stream) {
  ORIGINAL(cudaEventRecord);
  note_record(event);
  return real_cudaEventRecord(event, stream);
}

Status cudaEventRecordWithFlags(Event event, Stream stream, unsigned flags) {
  ORIGINAL(cudaEventRecordWithFlags);
  note_record(event);
  return real_cudaEventRecordWithFlags(event, stream, flags);
}

static int memory_kind(const void *pointer) {
  ORIGINAL(cudaPointerGetAttributes);
  union {
    int kind; /* the first field of cudaPointerAttributes */
    char room[256];
  } attributes = {0};
  inside = 1;
  const Status status = real_cudaPointerGetAttributes(&attributes, pointer);
  inside = 0;
  return status == kSuccess ? attributes.kind : kDevice;
}

/* Whether an asynchronous copy is one in name alone. A capture takes no pageable memory. */
static int copy_waits(const void *to, const void *from, size_t bytes, int kind) {
  if (kind == kDeviceToHost) return memory_kind(to) == kUnregistered;
  if (kind == kHostToDevice) return bytes > kStagedAtOnce && memory_kind(from) == kUnregistered;
  if (kind != kDefault) return 0;
  return memory_kind(to) == kUnregistered || (bytes > kStagedAtOnce && memory_kind(from) == kUnregistered);
}

Status cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, Stream stream) {
  ORIGINAL(cudaMemcpyAsync);
  if (inside) return real_cudaMemcpyAsync(to, from, bytes, kind, stream);
  count_launch();
  if (!copy_waits(to, from, bytes, kind)) return real_cudaMemcpyAsync(to, from, bytes, kind, stream);
  inside = 1;
  const double start = now();
  const Status status = real_cudaMemcpyAsync(to, from, bytes, kind, stream);
  inside = 0;
  write_call("cudaMemcpyAsync", start, kUnknown, 0);
  return status;
}
