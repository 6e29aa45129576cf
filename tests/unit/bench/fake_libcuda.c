// A stand-in for libcuda.so.1: kernels "run" by sleeping under one lock for all processes, so that processes share
// the GPU as saturating jobs do. FAKE_GPU_LOCK: lock file. FAKE_GPU_NS: time of one launch with 1,000 rounds.
// FAKE_GPU_MEMORY: bytes of device memory, of each process alone, or of all together with FAKE_GPU_SHARED, a folder
// where each process notes what it holds. $CUDA_MPS_PIPE_DIRECTORY/limit: MiB that an MPS client may have.
// FAKE_GPU_CONTEXT: bytes of one context. FAKE_GPU_BAD_PTX: loading a module fails with a log.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
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
  char door[512];  // Whoever waits for the GPU holds the door, so nobody gets the GPU twice while another waits.
  snprintf(door, sizeof door, "%s.door", path ? path : "");
  int turn = path ? open(door, O_CREAT | O_RDWR, 0600) : -1;
  int fd = path ? open(path, O_CREAT | O_RDWR, 0600) : -1;
  if (turn >= 0) flock(turn, LOCK_EX);
  if (fd >= 0) flock(fd, LOCK_EX);
  if (turn >= 0) close(turn);
  nanosleep(&t, 0);
  if (fd >= 0) close(fd);
  return 0;
}
static uint64_t held(void) {  // bytes that all living processes hold
  const char *folder = getenv("FAKE_GPU_SHARED");
  uint64_t sum = 0, one;
  char path[512];
  DIR *all = folder ? opendir(folder) : 0;
  if (!all) return used;
  for (struct dirent *entry; (entry = readdir(all));) {
    int pid = atoi(entry->d_name);
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    FILE *file = pid > 0 && !kill(pid, 0) ? fopen(path, "r") : 0;
    if (file && fscanf(file, "%lu", &one) == 1) sum += one;
    if (file) fclose(file);
  }
  closedir(all);
  return sum;
}
static uint64_t limit(void) {  // of this process, 0 for none
  const char *pipe = getenv("CUDA_MPS_PIPE_DIRECTORY");
  char path[512];
  uint64_t mib = 0;
  snprintf(path, sizeof path, "%s/limit", pipe ? pipe : "");
  FILE *file = pipe ? fopen(path, "r") : 0;
  if (file) fscanf(file, "%lu", &mib), fclose(file);
  return mib << 20;
}
static R hold(int64_t more) {
  const char *folder = getenv("FAKE_GPU_SHARED");
  uint64_t total = env_number("FAKE_GPU_MEMORY", 1ull << 30);
  char path[512];
  if (more > 0 && (held() + more > total || (limit() && used + more > limit()))) return 2;
  used += more;
  if (folder) {
    snprintf(path, sizeof path, "%s/%d", folder, getpid());
    FILE *file = fopen(path, "w");
    fprintf(file, "%lu", used), fclose(file);
  }
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
R cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)1; return hold(env_number("FAKE_GPU_CONTEXT", 0)); }
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
  *f = (void *)(intptr_t)(!strcmp(name, "fma_loop") ? 1 : !strcmp(name, "copy_loop") ? 2 : 3);
  return 0;
}
R cuMemAlloc_v2(uint64_t *p, size_t n) {
  if (hold(n)) return 2;
  uint64_t *block = malloc(n + 16);  // its size stands before it
  *block = n;
  *p = (uint64_t)(uintptr_t)block + 16;
  return 0;
}
R cuMemFree_v2(uint64_t p) {
  uint64_t *block = (uint64_t *)(uintptr_t)(p - 16);
  hold(-(int64_t)*block);
  free(block);
  return 0;
}
R cuMemsetD32_v2(uint64_t p, unsigned word, size_t count) {
  for (size_t i = 0; i < count; i += 1024)  // of much memory only samples are read: the first and last 4 KiB
    if (count < 4 << 20 || i < 2048 || i + 2048 > count)
      for (size_t j = i; j < i + 1024 && j < count; j++) ((unsigned *)(uintptr_t)p)[j] = word;
  return 0;
}
R cuMemGetInfo_v2(size_t *f, size_t *t) {
  uint64_t total = env_number("FAKE_GPU_MEMORY", 1ull << 30);
  *t = total;  // MPS shows its clients the whole GPU
  *f = limit() ? limit() - used : total - held();
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
  } else if ((intptr_t)f == 3) {
    unsigned *sum = (unsigned *)(uintptr_t)*(uint64_t *)arguments[0], *from = (unsigned *)(uintptr_t)*(uint64_t *)arguments[1];
    for (uint64_t i = 0; i < *(uint64_t *)arguments[2] * 4; i++) *sum += from[i];
    pending_ns += 1000000;
  } else {
    uint64_t vectors = *(uint64_t *)arguments[2];
    memcpy((void *)(uintptr_t)*(uint64_t *)arguments[0], (void *)(uintptr_t)*(uint64_t *)arguments[1], vectors * 16);
    pending_ns += 1000000;
  }
  return 0;
}
typedef struct { void *f; unsigned g[3], b[3], shared; void **arguments, **extra; } Node;
typedef struct { Node nodes[256]; int count; } Graph;
R cuGraphCreate(void **g, unsigned flags) { *g = calloc(1, sizeof(Graph)); return 0; }
R cuGraphAddKernelNode(void **n, void *graph, void **before, size_t waits, Node *node) {
  Graph *g = graph;
  if (waits != (g->count ? 1 : 0) || (waits && *before != &g->nodes[g->count - 1])) return 1;  // a chain
  g->nodes[g->count] = *node;
  *n = &g->nodes[g->count++];
  return 0;
}
R cuGraphInstantiateWithFlags(void **e, void *graph, unsigned long long flags) { *e = graph; return 0; }
R cuGraphLaunch(void *e, void *stream) {
  Graph *g = e;
  for (int i = 0; i < g->count; i++)
    cuLaunchKernel(g->nodes[i].f, g->nodes[i].g[0], 1, 1, g->nodes[i].b[0], 1, 1, 0, stream, g->nodes[i].arguments, 0);
  return 0;
}
R cuEventCreate(void **e, unsigned flags) { *e = calloc(1, 1); return 0; }
R cuEventRecord(void *e, void *stream) { return 0; }
R cuEventSynchronize(void *e) { return settle(); }
