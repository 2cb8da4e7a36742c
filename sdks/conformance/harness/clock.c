// A library to preload: the process's time of day is off by as many seconds as the file CONFORMANCE_CLOCK says, a
// 64-bit number that may change at any time. The monotonic clock and everything that waits stay as they are.
// (libfaketime also changes what waits: Python's time.sleep then fails with EINVAL.)

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset_s;

__attribute__((constructor)) static void find_offset(void) {
    const char *path = getenv("CONFORMANCE_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) offset_s = mapped;
}

static int64_t offset(void) { return offset_s ? *offset_s : 0; }

int clock_gettime(clockid_t clock, struct timespec *found) {
    int failed = (int)syscall(SYS_clock_gettime, clock, found);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) found->tv_sec += offset();
    return failed;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    int failed = (int)syscall(SYS_gettimeofday, found, zone);
    if (!failed) found->tv_sec += offset();
    return failed;
}

time_t time(time_t *found) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found) *found = now.tv_sec;
    return now.tv_sec;
}
