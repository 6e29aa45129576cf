// A stand-in for libcuda.so.1: kernels "run" by sleeping under one lock for all processes, so that processes share
// the GPU as saturating jobs do. FAKE_GPU_LOCK: lock file. FAKE_GPU_NS: time of one launch with 1,000 rounds.
// FAKE_GPU_MEMORY: bytes of device memory. FAKE_GPU_BAD_PTX: loading a module fails with a log.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

typedef int R;
static uint64_t pending_ns, used;
static uint64_t env_number(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, 0, 10) : otherwise;
}
static R settle(void) {
  struct timespec t = {pending_ns / 1000000000ull, pending_ns % 1000000000ull};
  const char *path = getenv("FAKE_GPU_LOCK");
  if (!pending_ns) return 0;
  pending_ns = 0;
  int fd = path ? open(path, O_CREAT | O_RDWR, 0600) : -1;
  if (fd >= 0) flock(fd, LOCK_EX);
  nanosleep(&t, 0);
  if (fd >= 0) close(fd);
  return 0;
}
R cuInit(unsigned flags) { return getenv("FAKE_GPU_NONE") ? 100 : 0; }
R cuDriverGetVersion(int *v) { *v = 13000; return 0; }
R cuDeviceGetCount(int *n) { *n = 1; return 0; }
R cuDeviceGet(int *d, int i) { *d = i; return 0; }
R cuDeviceGetName(char *s, int n, int d) {
  const char *seen = getenv("CUDA_VISIBLE_DEVICES");
  snprintf(s, n, "%s", seen && !strncmp(seen, "MIG-", 4) ? seen : "Fake GPU");
  return 0;
}
R cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? 9 : a == 76 ? 0 : 4; return 0; }
R cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)1; return 0; }
R cuCtxSetCurrent(void *c) { return 0; }
R cuCtxSynchronize(void) { return settle(); }
R cuGetErrorString(R r, const char **s) {
  *s = r == 2 ? "out of memory" : r == 100 ? "no CUDA-capable device is detected" : "failed";
  return 0;
}
R cuModuleLoadDataEx(void **m, const char *image, unsigned n, int *options, void **values) {
  if (getenv("FAKE_GPU_BAD_PTX")) {
    for (unsigned i = 0; i < n; i++)
      if (options[i] == 5) strcpy(values[i], "ptxas fatal: unresolved");
    return 218;
  }
  *m = strstr(image, "fma_loop") && strstr(image, "copy_loop") ? (void *)2 : 0;
  return *m ? 0 : 200;
}
R cuModuleGetFunction(void **f, void *m, const char *name) {
  *f = (void *)(intptr_t)(!strcmp(name, "fma_loop") ? 1 : 2);
  return 0;
}
R cuMemAlloc_v2(uint64_t *p, size_t n) {
  if (used + n > env_number("FAKE_GPU_MEMORY", 1ull << 30)) return 2;
  used += n;
  *p = (uint64_t)(uintptr_t)malloc(n);
  return 0;
}
R cuMemGetInfo_v2(size_t *f, size_t *t) {
  *t = env_number("FAKE_GPU_MEMORY", 1ull << 30);
  *f = *t - used;
  return 0;
}
R cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n) { memcpy((void *)(uintptr_t)to, from, n); return 0; }
R cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n) { settle(); memcpy(to, (void *)(uintptr_t)from, n); return 0; }
R cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                 void *stream, void **arguments, void **extra) {
  if ((intptr_t)f == 1) {
    float *out = (float *)(uintptr_t)*(uint64_t *)arguments[0];
    uint32_t rounds = *(uint32_t *)arguments[1];
    for (unsigned i = 0; i < gx * bx; i++) out[i] = 8.0f;
    pending_ns += rounds * env_number("FAKE_GPU_NS", 100000) / 1000;
  } else {
    uint64_t vectors = *(uint64_t *)arguments[2];
    memcpy((void *)(uintptr_t)*(uint64_t *)arguments[0], (void *)(uintptr_t)*(uint64_t *)arguments[1], vectors * 16);
    pending_ns += 1000000;
  }
  return 0;
}
R cuEventCreate(void **e, unsigned flags) { *e = calloc(1, 1); return 0; }
R cuEventRecord(void *e, void *stream) { return 0; }
R cuEventSynchronize(void *e) { return settle(); }
