/* Stands in for gputrain in the test of scripts/bench/host_waits: six steps of three launches each. Two steps are in flight
 * between log lines; a log line waits for all. FAKE_WAIT=stream or copy makes step 5 wait in its midst. Arguments: as
 * host_waits gives them; output_dir and logging.log_every are read. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  unsigned x, y, z;
} Dim3;
int __cudaLaunchKernel(void *kernel, Dim3 grid, Dim3 block, void **arguments, size_t shared, void *stream);
int cudaEventRecord(void *event, void *stream);
int cudaEventSynchronize(void *event);
int cudaStreamSynchronize(void *stream);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);

enum { kSteps = 6, kLaunches = 3, kInFlight = 2, kDeviceToHost = 2 };

static void launch(void) {
  const Dim3 one = {1, 1, 1};
  usleep(100); /* what happens one after the other has different times */
  __cudaLaunchKernel(NULL, one, one, NULL, 0, NULL);
}

static void wait_if_asked(int step) {
  const char *how = getenv("FAKE_WAIT");
  char pageable[8] = "p";
  if (step != 5 || how == NULL) return;
  if (strcmp(how, "stream") == 0) cudaStreamSynchronize(NULL);
  if (strcmp(how, "copy") == 0) cudaMemcpyAsync(pageable, "d", 1, kDeviceToHost, NULL);
}

static void write_line(FILE *metrics, int step) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  fprintf(metrics, "{\"kind\": \"step\", \"step\": %d, \"skipped\": false, \"unix_seconds\": %.6f}\n", step,
          (double)time.tv_sec + 1e-9 * (double)time.tv_nsec);
}

static const char *setting(int count, char **arguments, const char *key) {
  const size_t length = strlen(key);
  for (int i = 1; i < count; ++i) {
    if (strncmp(arguments[i], key, length) == 0) return arguments[i] + length;
  }
  fprintf(stderr, "fake_trainer: no %s\n", key);
  exit(2);
}

static FILE *open_metrics(const char *folder) {
  char path[4096];
  snprintf(path, sizeof path - 32, "%s", folder);
  mkdir(path, 0777);
  strcat(path, "/metrics.jsonl");
  return fopen(path, "w");
}

int main(int count, char **arguments) {
  FILE *metrics = open_metrics(setting(count, arguments, "output_dir="));
  const int log_every = atoi(setting(count, arguments, "logging.log_every="));
  if (metrics == NULL) return 6;
  char events[kSteps + 1][32];
  int delivered = 0;
  for (int step = 1; step <= kSteps; ++step) {
    for (int i = 0; i < kLaunches; ++i) {
      launch();
      if (i == 1) wait_if_asked(step);
    }
    cudaEventRecord(events[step], NULL);
    const int left = step == 1 || step % log_every == 0 ? 0 : kInFlight;
    while (delivered < step - left) {
      cudaEventSynchronize(events[++delivered]);
      write_line(metrics, delivered);
    }
  }
  return fclose(metrics) == 0 ? 0 : 6;
}
