// A stand-in for libcuda.so.1, for tests on machines without a GPU: the entry points of the driver API that the crate
// calls through cudarc. Work is asynchronous, as with the real driver, and misuse is detected. Kernels are those of
// src/kernel.cu, compiled for the CPU (kernel.cpp).
//
// Every stream is a thread that runs its queue in order, with a random delay before each operation. Device memory is host
// memory at shifted addresses, filled with a pattern. Errors that a real device may not detect are violations here: two
// simultaneous operations on overlapping bytes of which one writes, memory freed while queued work needs it, bytes outside
// an allocation, a call without a context, handles destroyed twice. When the process ends, the report in the file
// STANDIN_REPORT lists resources that were not released, violations, and the number of calls and of mixed batches.
//
// Environment: STANDIN_DELAY_US (longest delay, 300), STANDIN_SEED, STANDIN_MEMORY (bytes, 1 GiB), STANDIN_DEVICES (1),
// STANDIN_VERSION (12020), STANDIN_INIT (result of cuInit), STANDIN_BUSY (1: contexts cannot be created), STANDIN_FAIL
// (NAME:K:CODE, the K-th call of NAME returns CODE; NAME "any" counts all calls; with a trailing ":lost" every later call
// returns it as well, and queued work is not done).
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int R;
enum { OK = 0, INVALID = 1, OOM = 2, NO_DEVICE = 100, NO_CONTEXT = 201, BAD_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, BUSY = 46 };
#define DEVICE (1ull << 62)  // added to the host address of device memory, so that device and host addresses cannot be confused

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int lost, violations, calls, mixed;
static long live_events, live_streams, live_modules, live_contexts;
static uint64_t device_bytes, device_peak;
static char first_violation[200], failed[64];
static __thread void* current;

static long number(const char* name, long otherwise) {
    const char* text = getenv(name);
    return text ? atol(text) : otherwise;
}

static void violation(const char* what, const char* where) {
    if (!violations++) snprintf(first_violation, sizeof first_violation, "%s (%s)", what, where);
    fprintf(stderr, "stand-in: %s (%s)\n", what, where);
}

// ---- injected failures ---------------------------------------------------------------------------------------------

// Called with the lock held at the start of every entry point, which returns the result if it is not 0.
static R enter(const char* name, int needs_context) {
    static int of_name;
    calls++;
    const char* fail = getenv("STANDIN_FAIL");
    if (lost) return lost;
    if (fail) {
        char target[64];
        int k = 0, code = 0;
        char tail[16] = "";
        if (sscanf(fail, "%63[^:]:%d:%d:%15s", target, &k, &code, tail) >= 3) {
            int any = !strcmp(target, "any");
            if (any || !strcmp(target, name)) of_name++;
            if ((any || !strcmp(target, name)) && of_name == k) {
                snprintf(failed, sizeof failed, "%s", name);
                if (!strcmp(tail, "lost")) {
                    lost = code;
                    pthread_cond_broadcast(&changed);
                }
                return code;
            }
        }
    }
    if (needs_context && !current) {
        violation("a call without a context", name);
        return NO_CONTEXT;
    }
    return OK;
}
#define ENTER(needs_context)                             \
    pthread_mutex_lock(&lock);                           \
    R answer_ = enter(__func__, needs_context);          \
    if (answer_) {                                       \
        pthread_mutex_unlock(&lock);                     \
        return answer_;                                  \
    }
#define LEAVE(answer)                \
    do {                             \
        R a_ = (answer);             \
        pthread_mutex_unlock(&lock); \
        return a_;                   \
    } while (0)

// ---- memory --------------------------------------------------------------------------------------------------------

typedef struct Memory {
    struct Memory* next;
    char* start;
    size_t bytes;
    int pinned, queued;  // queued: operations that need it
} Memory;
static Memory* memories;

static Memory* find(const void* at, size_t bytes, int pinned) {
    for (Memory* m = memories; m; m = m->next)
        if (m->pinned == pinned && (char*)at >= m->start && (char*)at + bytes <= m->start + m->bytes) return m;
    return NULL;
}

static Memory* allocate(size_t bytes, int pinned) {
    Memory* m = calloc(1, sizeof *m);
    if (posix_memalign((void**)&m->start, 4096, bytes ? bytes : 1)) abort();
    memset(m->start, 0xa5, bytes);
    m->bytes = bytes, m->pinned = pinned, m->next = memories, memories = m;
    return m;
}

static R release(void* at, int pinned, const char* name) {
    for (Memory** p = &memories; *p; p = &(*p)->next) {
        Memory* m = *p;
        if (m->start != at || m->pinned != pinned) continue;
        if (m->queued) violation("memory freed while queued work needs it", name);
        *p = m->next;
        if (!pinned) device_bytes -= m->bytes;
        memset(m->start, 0x5a, m->bytes);
        // Kept mapped, so that late work is a violation above and not a crash.
        free(m);
        return OK;
    }
    violation("memory freed that is not allocated", name);
    return INVALID;
}

R cuMemAlloc_v2(uint64_t* address, size_t bytes) {
    ENTER(1);
    if (device_bytes + bytes > (uint64_t)number("STANDIN_MEMORY", 1 << 30)) LEAVE(OOM);
    device_bytes += bytes;
    if (device_bytes > device_peak) device_peak = device_bytes;
    *address = (uint64_t)allocate(bytes, 0)->start + DEVICE;
    LEAVE(OK);
}
R cuMemFree_v2(uint64_t address) {
    ENTER(1);
    LEAVE(release((void*)(address - DEVICE), 0, __func__));
}
R cuMemHostAlloc(void** at, size_t bytes, unsigned flags) {
    (void)flags;
    ENTER(1);
    *at = allocate(bytes, 1)->start;
    LEAVE(OK);
}
R cuMemFreeHost(void* at) {
    ENTER(1);
    LEAVE(release(at, 1, __func__));
}
R cuMemGetInfo_v2(size_t* free, size_t* total) {
    ENTER(1);
    *total = number("STANDIN_MEMORY", 1 << 30);
    *free = *total - device_bytes;
    LEAVE(OK);
}

// ---- streams and events --------------------------------------------------------------------------------------------

typedef struct {  // one recording of an event
    int done, users;
} Ticket;
typedef struct {
    Ticket* last;
    int alive;
} Event;
typedef struct {
    char* at;
    size_t bytes;
    int writes;
    Memory* memory;
} Range;
typedef struct Op {
    struct Op* next;
    enum { COPY, FILL, LAUNCH, SIGNAL, WAIT } kind;
    Range range[3];  // what it reads, what it writes, what else it reads
    char* snapshot;  // pageable source, copied when it was queued
    Ticket* ticket;
    char name[64];
    uint32_t n, hw, width, grid[2], block;
    float a[3], b[3];
} Op;
typedef struct Stream {
    Op *first, *last;
    int busy, end;
    pthread_t thread;
    struct Stream* next;
} Stream;
static Stream* streams;
static Range active[64];

static void unuse(Ticket* t) {
    if (t && !--t->users) free(t);
}

static unsigned delay(void) {
    static unsigned state;
    if (!state) state = 2 * (unsigned)number("STANDIN_SEED", 1) + 1;
    state = state * 1664525u + 1013904223u;
    long most = number("STANDIN_DELAY_US", 300);
    return most ? (state >> 8) % (unsigned)most : 0;
}

// For kernel.cpp.
uint16_t half_bits(float x) {
    _Float16 h = (_Float16)x;
    uint16_t bits;
    memcpy(&bits, &h, 2);
    return bits;
}

// In kernel.cpp.
int kernel_mix_bytes(const char* name);
void kernel_run(const char* name, const unsigned grid[2], unsigned block, const void* in, void* out, unsigned n, unsigned hw,
                const float a[3], const float b[3], const void* mixes, unsigned width);

// Kernels of kernel.cu run as they are; `brightness` is the one of examples/own_kernel.cu, `busy` that of the benchmark.
static void compute(Op* op) {
    char* out = op->range[1].at;
    if (!strcmp(op->name, "brightness")) {
        const float* in = (const float*)op->range[0].at;
        for (uint64_t i = 0; i < (uint64_t)op->n * op->hw; i++) ((float*)out)[i / op->hw] += in[i];
    } else if (!strcmp(op->name, "busy")) {
        usleep(2000);
    } else {
        kernel_run(op->name, op->grid, op->block, op->range[0].at, out, op->n, op->hw, op->a, op->b, op->range[2].at, op->width);
    }
}

static void touch(Op* op, int begin) {
    for (int r = 0; r < 3; r++) {
        Range* range = &op->range[r];
        if (!range->bytes) continue;
        if (begin && !lost) {
            Memory* m = range->memory ? find(range->at, range->bytes, range->memory->pinned) : NULL;
            if (range->memory && m != range->memory) violation("work on memory that was freed", op->name);
        }
        int slot = -1;
        for (int i = 0; i < 64; i++) {
            Range* other = &active[i];
            if (!begin && other->at == range->at && other->bytes == range->bytes && other->writes == range->writes) {
                slot = i;
                break;
            }
            if (begin && !other->bytes && slot < 0) slot = i;
            if (begin && !lost && other->bytes && (other->writes || range->writes) && other->at < range->at + range->bytes &&
                range->at < other->at + other->bytes)
                violation("two operations at once on the same bytes, one of them writing", op->name);
        }
        if (slot >= 0) active[slot] = begin ? *range : (Range){0};
        if (!begin && range->memory) range->memory->queued--;
    }
}

static void* serve(void* argument) {
    Stream* s = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!s->first && !s->end) pthread_cond_wait(&changed, &lock);
        Op* op = s->first;
        if (!op) break;
        s->busy = 1;
        if (op->kind == WAIT)
            while (!op->ticket->done && !lost) pthread_cond_wait(&changed, &lock);
        if (op->kind == COPY || op->kind == FILL || op->kind == LAUNCH) {
            touch(op, 1);
            unsigned us = delay();
            pthread_mutex_unlock(&lock);
            usleep(us / 2);
            if (!lost && op->kind == COPY)
                memcpy(op->range[1].at, op->snapshot ? op->snapshot : op->range[0].at, op->range[1].bytes);
            if (!lost && op->kind == FILL) memset(op->range[1].at, (int)op->n, op->range[1].bytes);
            if (!lost && op->kind == LAUNCH) compute(op);
            usleep(us / 2);
            pthread_mutex_lock(&lock);
            touch(op, 0);
        }
        if (op->kind == SIGNAL) op->ticket->done = 1;
        unuse(op->ticket);
        s->first = op->next;
        if (!s->first) s->last = NULL;
        s->busy = 0;
        free(op->snapshot);
        free(op);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static Stream* start(void) {
    Stream* s = calloc(1, sizeof *s);
    s->next = streams, streams = s;
    pthread_create(&s->thread, NULL, serve, s);
    return s;
}

// The stream of a handle; 0, 1 and 2 are the default ones, which are one here.
static Stream* stream_of(void* handle) {
    static Stream* standard;
    if ((uintptr_t)handle <= 2) {
        if (!standard) standard = start();
        return standard;
    }
    for (Stream* s = streams; s; s = s->next)
        if (s == handle && !s->end) return s;
    return NULL;
}

static R queue(Stream* s, Op op, const char* name) {
    if (!s) {
        violation("a stream that is not alive", name);
        return BAD_HANDLE;
    }
    Op* o = malloc(sizeof *o);
    *o = op;
    if (!o->name[0]) snprintf(o->name, sizeof o->name, "%s", name);
    for (int r = 0; r < 3; r++)
        if (o->range[r].memory && o->range[r].bytes) o->range[r].memory->queued++;
    if (o->ticket) o->ticket->users++;
    if (s->last) s->last->next = o;
    else s->first = o;
    s->last = o;
    pthread_cond_broadcast(&changed);
    return OK;
}

static R drain(Stream* s) {
    while (s && (s->first || s->busy)) pthread_cond_wait(&changed, &lock);
    return lost;
}

R cuStreamCreate(void** handle, unsigned flags) {
    (void)flags;
    ENTER(1);
    *handle = start();
    live_streams++;
    LEAVE(OK);
}
R cuStreamDestroy_v2(void* handle) {
    ENTER(1);
    Stream* s = stream_of(handle);
    if (!s) {
        violation("a stream destroyed twice", __func__);
        LEAVE(BAD_HANDLE);
    }
    s->end = 1;
    live_streams--;
    pthread_cond_broadcast(&changed);
    LEAVE(OK);
}
R cuStreamSynchronize(void* handle) {
    ENTER(1);
    LEAVE(drain(stream_of(handle)));
}
R cuCtxSynchronize(void) {
    ENTER(1);
    for (Stream* s = streams; s; s = s->next) drain(s);
    LEAVE(lost);
}
R cuEventCreate(void** handle, unsigned flags) {
    (void)flags;
    ENTER(1);
    Event* e = calloc(1, sizeof *e);
    e->alive = 1;
    live_events++;
    *handle = e;
    LEAVE(OK);
}
R cuEventDestroy_v2(void* handle) {
    ENTER(1);
    Event* e = handle;
    if (!e->alive) {
        violation("an event destroyed twice", __func__);
        LEAVE(BAD_HANDLE);
    }
    e->alive = 0;
    unuse(e->last);
    live_events--;
    LEAVE(OK);  // kept, so that a second destroy is detected
}
R cuEventRecord(void* handle, void* stream) {
    ENTER(1);
    Event* e = handle;
    unuse(e->last);
    e->last = calloc(1, sizeof(Ticket));
    e->last->users = 1;
    LEAVE(queue(stream_of(stream), (Op){.kind = SIGNAL, .ticket = e->last}, __func__));
}
R cuStreamWaitEvent(void* stream, void* handle, unsigned flags) {
    (void)flags;
    ENTER(1);
    Event* e = handle;
    if (!e->last) LEAVE(OK);
    LEAVE(queue(stream_of(stream), (Op){.kind = WAIT, .ticket = e->last}, __func__));
}
R cuEventQuery(void* handle) {
    ENTER(0);
    Event* e = handle;
    LEAVE(!e->last || e->last->done ? OK : NOT_READY);
}
R cuEventSynchronize(void* handle) {
    ENTER(1);
    Event* e = handle;
    Ticket* t = e->last;
    if (t) {
        t->users++;
        while (!t->done && !lost) pthread_cond_wait(&changed, &lock);
        unuse(t);
    }
    LEAVE(lost);
}

// ---- copies and kernels --------------------------------------------------------------------------------------------

static Range device_range(uint64_t address, size_t bytes, int writes, const char* name) {
    char* at = (char*)(address - DEVICE);
    Memory* m = find(at, bytes, 0);
    if (!m) violation("bytes outside an allocation", name);
    return (Range){at, bytes, writes, m};
}

R cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
    ENTER(1);
    Op op = {.kind = COPY};
    Memory* m = find(from, bytes, 1);
    op.range[0] = (Range){(char*)from, m ? bytes : 0, 0, m};
    op.range[1] = device_range(to, bytes, 1, __func__);
    if (!op.range[1].memory) LEAVE(INVALID);
    if (!m) op.snapshot = memcpy(malloc(bytes), from, bytes);
    LEAVE(queue(stream_of(stream), op, __func__));
}
R cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
    ENTER(1);
    Op op = {.kind = COPY};
    op.range[0] = device_range(from, bytes, 0, __func__);
    op.range[1] = (Range){to, bytes, 1, find(to, bytes, 1)};
    if (!op.range[0].memory) LEAVE(INVALID);
    R r = queue(stream_of(stream), op, __func__);
    if (!r && !op.range[1].memory) r = drain(stream_of(stream));  // to pageable memory: waits, as the driver does
    LEAVE(r);
}
R cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
    ENTER(1);
    Op op = {.kind = COPY};
    op.range[0] = device_range(from, bytes, 0, __func__);
    op.range[1] = device_range(to, bytes, 1, __func__);
    if (!op.range[0].memory || !op.range[1].memory) LEAVE(INVALID);
    LEAVE(queue(stream_of(stream), op, __func__));
}
R cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) {
    ENTER(1);
    Op op = {.kind = FILL, .n = value};
    op.range[1] = device_range(to, bytes, 1, __func__);
    if (!op.range[1].memory) LEAVE(INVALID);
    LEAVE(queue(stream_of(stream), op, __func__));
}
R cuModuleLoadData(void** module, const void* image) {
    ENTER(1);
    *module = strdup(image);
    live_modules++;
    LEAVE(OK);
}
R cuModuleUnload(void* module) {
    (void)module;
    ENTER(1);
    live_modules--;
    LEAVE(OK);
}
R cuModuleGetFunction(void** function, void* module, const char* name) {
    ENTER(1);
    char entry[128];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    if (!strstr(module, entry)) LEAVE(NOT_FOUND);
    *function = strdup(name);
    LEAVE(OK);
}
R cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                 unsigned shared, void* stream, void** args, void** extra) {
    (void)shared, (void)extra;
    ENTER(1);
    Op op = {.kind = LAUNCH, .grid = {gx, gy}, .block = bx};
    snprintf(op.name, sizeof op.name, "%s", (char*)function);
    if (gy < 1 || gz != 1 || by != 1 || bz != 1 || gy > 65535 || bx > 1024) LEAVE(INVALID);
    if (!strcmp(op.name, "brightness")) {
        op.n = *(uint32_t*)args[2], op.hw = *(uint32_t*)args[3];
        op.range[0] = device_range(*(uint64_t*)args[0], 4ull * op.n * op.hw, 0, op.name);
        op.range[1] = device_range(*(uint64_t*)args[1], 4ull * op.n, 1, op.name);
        if (!op.range[0].memory || !op.range[1].memory) LEAVE(INVALID);
        LEAVE(queue(stream_of(stream), op, __func__));
    }
    if (!strcmp(op.name, "busy")) {
        op.range[1] = device_range(*(uint64_t*)args[0], 4ull * gx * bx, 1, op.name);
        if (!op.range[1].memory) LEAVE(INVALID);
        LEAVE(queue(stream_of(stream), op, __func__));
    }
    uint64_t in = *(uint64_t*)args[0], out = *(uint64_t*)args[1];
    op.n = *(uint32_t*)args[2], op.hw = *(uint32_t*)args[3];
    for (int c = 0; c < 3; c++) op.a[c] = *(float*)args[4 + c], op.b[c] = *(float*)args[7 + c];
    uint64_t values = 3ull * op.n * op.hw;
    if (strstr(op.name, "x4") && (op.hw % 4 || in % 4 || out % 16)) violation("misaligned for vectors", op.name);
    op.range[0] = device_range(in, values, 0, op.name);
    op.range[1] = device_range(out, values * (strstr(op.name, "_f32_") ? 4 : 2), 1, op.name);
    if (!op.range[0].memory || !op.range[1].memory) LEAVE(INVALID);
    int mix_bytes = kernel_mix_bytes(op.name);
    if (mix_bytes < 0) LEAVE(NOT_FOUND);
    if (mix_bytes > 0) {
        uint64_t mixes = *(uint64_t*)args[10];
        op.width = *(uint32_t*)args[11];
        if (mixes % 4) violation("misaligned", op.name);
        op.range[2] = device_range(mixes, (uint64_t)mix_bytes * op.n, 0, op.name);
        if (!op.range[2].memory) LEAVE(INVALID);
        mixed++;
    }
    LEAVE(queue(stream_of(stream), op, __func__));
}

// ---- driver, devices, contexts -------------------------------------------------------------------------------------

static int context;
R cuDriverGetVersion(int* version) { return *version = number("STANDIN_VERSION", 12020), OK; }
R cuInit(unsigned flags) { return (void)flags, number("STANDIN_INIT", OK); }
R cuDeviceGetCount(int* count) {
    ENTER(0);
    *count = number("STANDIN_DEVICES", 1);
    LEAVE(OK);
}
R cuDeviceGet(int* device, int ordinal) {
    ENTER(0);
    *device = ordinal;
    LEAVE(ordinal < number("STANDIN_DEVICES", 1) ? OK : 101);
}
R cuDeviceGetName(char* name, int length, int device) { return snprintf(name, length, "Stand-in %d", device), OK; }
R cuDeviceTotalMem_v2(size_t* bytes, int device) { return (void)device, *bytes = number("STANDIN_MEMORY", 1 << 30), OK; }
R cuDeviceGetAttribute(int* value, int attribute, int device) {
    (void)device;
    ENTER(0);
    *value = attribute == 75 ? 9 : 0;  // compute capability 9.0, no memory pools
    LEAVE(OK);
}
R cuDevicePrimaryCtxRetain(void** handle, int device) {
    (void)device;
    ENTER(0);
    if (number("STANDIN_BUSY", 0)) LEAVE(BUSY);
    live_contexts++;
    *handle = &context;
    LEAVE(OK);
}
R cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    ENTER(0);
    live_contexts--;
    LEAVE(OK);
}
R cuCtxGetCurrent(void** handle) {
    ENTER(0);
    *handle = current;
    LEAVE(OK);
}
R cuCtxSetCurrent(void* handle) {
    ENTER(0);
    current = handle;
    LEAVE(OK);
}
R cuGetErrorName(R code, const char** name) { return (void)code, *name = "STANDIN_ERROR", OK; }
R cuGetErrorString(R code, const char** text) { return (void)code, *text = "an answer of the stand-in", OK; }

__attribute__((destructor)) static void report(void) {
    const char* path = getenv("STANDIN_REPORT");
    FILE* f = path ? fopen(path, "w") : NULL;
    if (!f) return;
    pthread_mutex_lock(&lock);
    long device = 0, pinned = 0;
    for (Memory* m = memories; m; m = m->next) *(m->pinned ? &pinned : &device) += 1;
    fprintf(f,
            "{\"violations\": %d, \"first\": \"%s\", \"device_memory\": %ld, \"pinned_memory\": %ld, \"events\": %ld, "
            "\"streams\": %ld, \"modules\": %ld, \"contexts\": %ld, \"device_peak\": %llu, \"calls\": %d, "
            "\"mixed\": %d, \"failed\": \"%s\"}\n",
            violations, first_violation, device, pinned, live_events, live_streams, live_modules, live_contexts,
            (unsigned long long)device_peak, calls, mixed, failed);
    fclose(f);
    pthread_mutex_unlock(&lock);
}
