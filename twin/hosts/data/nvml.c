/* libnvidia-ml of the host twin: answers from /twin/nvml what nvidia-ctk and other NVML users ask about GPUs and MIG
 * devices. Functions that nothing here needs are missing. Types and values follow the public NVML interface.
 *
 * /twin/nvml, one item a line:  driver VERSION | cuda NUMBER
 *   gpu INDEX UUID BUS DEVICE MAJOR MINOR MEMORY_MIB MIG NAME...     (MIG: -1 none, 0 off, 1 on)
 *   mig GPU GI CI SLICES MEMORY_MIB PROFILE UUID      (PROFILE: index of the GPU instance profile in the interface)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, NO_DRIVER = 9, MISMATCH = 18 };
#define MOST 16
#define MOST_MIG 112

typedef struct handle {
  int is_mig, index, minor, mig, major, minor_cc, gi, ci, slices, profile;
  unsigned device;
  unsigned long long memory;
  struct handle *parent;
  char uuid[80], bus[32], name[96];
} handle;
typedef struct {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
} pci_info;
typedef struct { unsigned long long total, free, used; } memory_info;
typedef struct { unsigned numbers[8]; unsigned long long memory; } attributes;
typedef struct { handle *device; unsigned id, profile, start, size; } gpu_instance;
typedef struct { handle *device, *gpu_instance; unsigned id, profile, start, size; } compute_instance;
typedef struct { unsigned numbers[10]; unsigned long long memory; } gpu_profile;

static handle gpus[MOST], migs[MOST_MIG];
static int gpu_count, mig_count, ready, cuda;
static char driver[32];

static const char *own_version(void) {
  static char path[4096];
  Dl_info info;
  if (!dladdr((void *)own_version, &info) || !realpath(info.dli_fname, path)) return "";
  char *found = strstr(path, "libnvidia-ml.so.");
  return found ? found + strlen("libnvidia-ml.so.") : "";
}

int nvmlInit_v2(void) {
  char line[512], word[16];
  FILE *file = fopen("/twin/nvml", "r");
  gpu_count = mig_count = 0;
  driver[0] = 0;
  if (!file) return NO_DRIVER;
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "%15s", word) != 1) continue;
    if (!strcmp(word, "driver")) sscanf(line, "%*s %31s", driver);
    else if (!strcmp(word, "cuda")) sscanf(line, "%*s %d", &cuda);
    else if (!strcmp(word, "gpu") && gpu_count < MOST) {
      handle *gpu = &gpus[gpu_count++];
      memset(gpu, 0, sizeof *gpu);
      sscanf(line, "%*s %d %79s %31s %x %d %d %llu %d %95[^\n]", &gpu->index, gpu->uuid, gpu->bus, &gpu->device, &gpu->major,
             &gpu->minor_cc, &gpu->memory, &gpu->mig, gpu->name);
    } else if (!strcmp(word, "mig") && mig_count < MOST_MIG) {
      handle *device = &migs[mig_count++];
      int parent = 0;
      memset(device, 0, sizeof *device);
      sscanf(line, "%*s %d %d %d %d %llu %d %79s", &parent, &device->gi, &device->ci, &device->slices, &device->memory,
             &device->profile, device->uuid);
      device->is_mig = 1;
      for (int i = 0; i < gpu_count; i++)
        if (gpus[i].index == parent) device->parent = &gpus[i];
    }
  }
  fclose(file);
  if (!driver[0]) return NO_DRIVER;
  if (strcmp(driver, own_version())) return MISMATCH;
  ready = 1;
  return OK;
}
int nvmlInit(void) { return nvmlInit_v2(); }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) {
  switch (code) {
    case OK: return "Success";
    case NO_DRIVER: return "Driver Not Loaded";
    case MISMATCH: return "Driver/library version mismatch";
    case NOT_FOUND: return "Not Found";
    case UNSUPPORTED: return "Not Supported";
    case INVALID: return "Invalid Argument";
    default: return "Unknown Error";
  }
}

static int copy(char *to, unsigned size, const char *text) {
  if (strlen(text) + 1 > size) return TOO_SMALL;
  strcpy(to, text);
  return OK;
}

int nvmlSystemGetDriverVersion(char *text, unsigned size) { return copy(text, size, driver); }
int nvmlSystemGetNVMLVersion(char *text, unsigned size) { return copy(text, size, own_version()); }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = cuda; return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = cuda; return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) {
  if (!ready) return UNINITIALIZED;
  *count = gpu_count;
  return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle **device) {
  if (index >= (unsigned)gpu_count) return INVALID;
  *device = &gpus[index];
  return OK;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, handle **device) {
  for (int i = 0; i < gpu_count; i++)
    if (!strcmp(gpus[i].uuid, uuid)) { *device = &gpus[i]; return OK; }
  for (int i = 0; i < mig_count; i++)
    if (!strcmp(migs[i].uuid, uuid)) { *device = &migs[i]; return OK; }
  return NOT_FOUND;
}
int nvmlDeviceGetIndex(handle *device, unsigned *index) { *index = device->index; return OK; }
int nvmlDeviceGetName(handle *device, char *text, unsigned size) {
  return copy(text, size, device->is_mig ? device->parent->name : device->name);
}
int nvmlDeviceGetUUID(handle *device, char *text, unsigned size) { return copy(text, size, device->uuid); }
int nvmlDeviceGetMinorNumber(handle *device, unsigned *minor) {
  if (device->is_mig) return INVALID;
  *minor = device->index;
  return OK;
}
int nvmlDeviceGetPciInfo_v3(handle *device, pci_info *info) {
  if (device->is_mig) return INVALID;
  memset(info, 0, sizeof *info);
  sscanf(device->bus, "%x:%x:%x", &info->domain, &info->bus, &info->device);
  info->id = device->device << 16 | 0x10de;
  snprintf(info->bus_id, sizeof info->bus_id, "%08X:%02X:%02X.0", info->domain, info->bus, info->device);
  snprintf(info->legacy, sizeof info->legacy, "%04X:%02X:%02X.0", info->domain & 0xffff, info->bus & 0xff, info->device & 0xff);
  return OK;
}
int nvmlDeviceGetMemoryInfo(handle *device, memory_info *memory) {
  memory->total = memory->free = (device->is_mig ? device->parent->memory : device->memory) << 20;
  memory->used = 0;
  return OK;
}
int nvmlDeviceGetCudaComputeCapability(handle *device, int *major, int *minor) {
  handle *gpu = device->is_mig ? device->parent : device;
  *major = gpu->major;
  *minor = gpu->minor_cc;
  return OK;
}
int nvmlDeviceGetMigMode(handle *device, unsigned *current, unsigned *pending) {
  if (device->is_mig) return INVALID;
  if (device->mig < 0) return UNSUPPORTED;
  *current = *pending = device->mig;
  return OK;
}
int nvmlDeviceIsMigDeviceHandle(handle *device, unsigned *answer) { *answer = device->is_mig; return OK; }
int nvmlDeviceGetMaxMigDeviceCount(handle *device, unsigned *count) { *count = device->mig < 0 ? 0 : 7; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(handle *device, unsigned index, handle **found) {
  for (int i = 0; i < mig_count; i++)
    if (migs[i].parent == device && index-- == 0) { *found = &migs[i]; return OK; }
  return NOT_FOUND;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle *device, handle **parent) {
  if (!device->is_mig) return INVALID;
  *parent = device->parent;
  return OK;
}
int nvmlDeviceGetGpuInstanceId(handle *device, unsigned *id) {
  if (!device->is_mig) return INVALID;
  *id = device->gi;
  return OK;
}
int nvmlDeviceGetComputeInstanceId(handle *device, unsigned *id) {
  if (!device->is_mig) return INVALID;
  *id = device->ci;
  return OK;
}
int nvmlDeviceGetAttributes_v2(handle *device, attributes *found) {
  if (!device->is_mig) return INVALID;
  memset(found, 0, sizeof *found);
  found->numbers[6] = found->numbers[7] = device->slices; /* slices of the GPU instance and of the compute instance */
  found->memory = device->memory;
  return OK;
}

/* A MIG device has one GPU instance with one compute instance; the device's own handle stands for all three. */
int nvmlDeviceGetGpuInstanceById(handle *device, unsigned id, handle **found) {
  for (int i = 0; i < mig_count; i++)
    if (migs[i].parent == device && migs[i].gi == (int)id) { *found = &migs[i]; return OK; }
  return NOT_FOUND;
}
int nvmlGpuInstanceGetComputeInstanceById(handle *instance, unsigned id, handle **found) {
  if (instance->ci != (int)id) return NOT_FOUND;
  *found = instance;
  return OK;
}
int nvmlGpuInstanceGetInfo(handle *instance, gpu_instance *info) {
  memset(info, 0, sizeof *info);
  info->device = instance->parent;
  info->id = instance->gi;
  info->profile = instance->profile;
  return OK;
}
int nvmlComputeInstanceGetInfo_v2(handle *instance, compute_instance *info) {
  memset(info, 0, sizeof *info);
  info->device = instance->parent;
  info->gpu_instance = instance;
  info->id = instance->ci;
  info->profile = instance->profile;
  return OK;
}
int nvmlDeviceGetGpuInstanceProfileInfo(handle *device, unsigned profile, gpu_profile *info) {
  for (int i = 0; i < mig_count; i++)
    if (migs[i].parent == device && migs[i].profile == (int)profile) {
      memset(info, 0, sizeof *info);
      info->numbers[0] = profile; /* id */
      info->numbers[2] = migs[i].slices;
      info->memory = migs[i].memory;
      return OK;
    }
  return UNSUPPORTED;
}
int nvmlGpuInstanceGetComputeInstanceProfileInfo(handle *instance, unsigned profile, unsigned engine, unsigned info[9]) {
  static const int slices[] = {1, 2, 3, 4, 7, 8, 6};
  if (engine || profile > 6 || slices[profile] != instance->slices) return UNSUPPORTED;
  memset(info, 0, 9 * sizeof *info);
  info[0] = instance->profile; /* id, the same number that the instance reports */
  info[1] = instance->slices;
  return OK;
}
