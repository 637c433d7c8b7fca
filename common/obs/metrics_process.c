/* SPDX-License-Identifier: Apache-2.0 */
/* The process_* metrics that every Prometheus client library has, from /proc/self. */
#include "common/obs/metrics-internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Places in /proc/self/stat behind the parenthesis that ends the command's name; the state is 0. */
enum { STAT_UTIME = 11, STAT_STIME = 12, STAT_START = 19, STAT_VSIZE = 20, STAT_RSS = 21 };
#define STAT_FIELDS 22

static int read_text(const char *path, char *out, size_t size)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

    if (n < 0)
        return -1;
    out[n] = '\0';
    return 0;
}

static int read_stat(double *fields)
{
    char text[1024];

    if (read_text("/proc/self/stat", text, sizeof text) < 0)
        return -1;
    char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == '\0')
        return -1;
    at += 3; /* the state is a letter */
    for (size_t i = 1; i < STAT_FIELDS; i++)
        fields[i] = strtod(at, &at);
    return 0;
}

/* Seconds since the epoch at which the machine was started; 0 where unknown. */
static double boot_time(void)
{
    char text[16384]; /* the line comes behind one line a processor */
    double seconds = 0;

    if (read_text("/proc/stat", text, sizeof text) < 0)
        return 0;
    const char *line = strstr(text, "\nbtime ");
    if (line)
        seconds = strtod(line + strlen("\nbtime "), NULL);
    return seconds;
}

static double count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    double count = 0;

    if (!dir)
        return -1;
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
        count += e->d_name[0] != '.';
    closedir(dir);
    return count - 1; /* without the one that looks */
}

static void print(Buf *out, const char *name, const char *type, const char *help, double value)
{
    buf_printf(out, "# HELP process_%s %s\n# TYPE process_%s %s\nprocess_%s ", name, help, name,
               type, name);
    metrics_print_number(out, value);
    buf_append_char(out, '\n');
}

static void print_fds(Buf *out)
{
    struct rlimit limit;
    double open_fds = count_fds();

    if (open_fds >= 0)
        print(out, "open_fds", "gauge", "Number of open file descriptors.", open_fds);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        print(out, "max_fds", "gauge", "Maximum number of open file descriptors.",
              (double)limit.rlim_cur);
}

int metrics_print_process(Buf *out)
{
    const double ticks = (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
    double stat[STAT_FIELDS] = {0}, boot = boot_time();

    print_fds(out);
    if (read_stat(stat) < 0)
        return buf_check(out, "metrics", NULL);
    print(out, "cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.",
          (stat[STAT_UTIME] + stat[STAT_STIME]) / ticks);
    print(out, "resident_memory_bytes", "gauge", "Resident memory size in bytes.",
          stat[STAT_RSS] * page);
    print(out, "virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", stat[STAT_VSIZE]);
    if (boot > 0)
        print(out, "start_time_seconds", "gauge",
              "Start time of the process since the epoch in seconds.",
              boot + stat[STAT_START] / ticks);
    return buf_check(out, "metrics", NULL);
}
