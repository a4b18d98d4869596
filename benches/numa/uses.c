/* Preloaded into the command: on which node of memory each page of its rows and edges lies, and from which nodes it is used.
 *
 * The command says in its log where they are (MEGAGRID_LOG=megagrid::memory=trace). When the file $USES_BEGIN is there, all their
 * pages are closed; whoever uses one first faults, is noted with its node, and opens it. That is done $USES_ROUNDS times, for
 * $USES_MS milliseconds each. Then the system is asked where the pages are, and $USES_OUT gets a line for each name: pages by the node
 * that they are on, and uses by the node of the page and the node of the thread.
 *
 * With USES_UNBOUND=1 threads are not kept on processors: for comparison. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NODES = 8, PAGE = 4096, MOST_ARRAYS = 1 << 16, NAME = 64 };

struct array {
    char name[NAME];
    uintptr_t begin, end;        /* whole pages */
    uint16_t (*uses)[NODES];     /* by page and node of the thread */
};
static struct array arrays[MOST_ARRAYS];
static int num_arrays;
static struct sigaction before;

int sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t *set) {
    const char *unbound = getenv("USES_UNBOUND");
    if (unbound && *unbound == '1') return 0;
    return syscall(SYS_sched_setaffinity, thread, bytes, set) < 0 ? -1 : 0;
}

static int by_address(const void *a, const void *b) {
    const struct array *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static struct array *find(uintptr_t at) {
    int low = 0, high = num_arrays;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (arrays[middle].begin <= at) low = middle + 1; else high = middle;
    }
    return low > 0 && at < arrays[low - 1].end ? &arrays[low - 1] : NULL;
}

static void fault(int signal, siginfo_t *info, void *context) {
    uintptr_t at = (uintptr_t)info->si_addr;
    struct array *array = find(at);
    if (!array) {                /* somebody else's */
        if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(signal, info, context);
        else sigaction(SIGSEGV, &before, NULL);
        return;
    }
    unsigned node = 0;
    syscall(SYS_getcpu, NULL, &node, NULL);
    __atomic_fetch_add(&array->uses[(at - array->begin) / PAGE][node % NODES], 1, __ATOMIC_RELAXED);
    mprotect((void *)(at / PAGE * PAGE), PAGE, PROT_READ | PROT_WRITE);
}

/* Reads the arrays' names and addresses: ... what="left sync" begin=4096 end=8192 */
static void read_arrays(const char *path) {
    FILE *log = fopen(path, "r");
    char line[1024];
    while (log && fgets(line, sizeof line, log)) {
        char *what = strstr(line, "what=\""), *begin = strstr(line, "begin="), *end = strstr(line, "end=");
        if (!what || !begin || !end || num_arrays == MOST_ARRAYS) continue;
        struct array *array = &arrays[num_arrays];
        what += strlen("what=\"");
        snprintf(array->name, NAME, "%.*s", (int)strcspn(what, "\""), what);
        array->begin = (strtoull(begin + strlen("begin="), NULL, 10) + PAGE - 1) / PAGE * PAGE;
        array->end = strtoull(end + strlen("end="), NULL, 10) / PAGE * PAGE;
        if (array->begin >= array->end) continue;   /* no whole page */
        array->uses = calloc((array->end - array->begin) / PAGE, sizeof *array->uses);
        num_arrays++;
    }
    if (log) fclose(log);
    qsort(arrays, num_arrays, sizeof *arrays, by_address);
    int kept = 0;                /* each once, however often it was told */
    for (int n = 0; n < num_arrays; n++)
        if (kept == 0 || arrays[n].begin >= arrays[kept - 1].end) arrays[kept++] = arrays[n];
    num_arrays = kept;
}

static void protect(int access) {
    for (int n = 0; n < num_arrays; n++) mprotect((void *)arrays[n].begin, arrays[n].end - arrays[n].begin, access);
}

static void write_name(FILE *out, int first) {
    long on[NODES + 1] = {0}, uses[NODES][NODES] = {{0}};
    for (int n = first; n < num_arrays; n++) {
        struct array *array = &arrays[n];
        if (strcmp(array->name, arrays[first].name)) continue;
        size_t pages = (array->end - array->begin) / PAGE;
        void **addresses = malloc(pages * sizeof *addresses);
        int *nodes = malloc(pages * sizeof *nodes);
        for (size_t page = 0; page < pages; page++) addresses[page] = (void *)(array->begin + page * PAGE);
        if (syscall(SYS_move_pages, 0, pages, addresses, NULL, nodes, 0) == 0)
            for (size_t page = 0; page < pages; page++) {
                int at = nodes[page] < 0 ? NODES : nodes[page] % NODES;
                on[at]++;
                for (int from = 0; at < NODES && from < NODES; from++) uses[at][from] += array->uses[page][from];
            }
        free(addresses);
        free(nodes);
    }
    fprintf(out, "array %s;", arrays[first].name);
    for (int at = 0; at <= NODES; at++) fprintf(out, " %ld", on[at]);
    for (int at = 0; at < NODES; at++) for (int from = 0; from < NODES; from++) fprintf(out, " %ld", uses[at][from]);
    fprintf(out, "\n");
}

static int number(const char *name) { return getenv(name) ? atoi(getenv(name)) : 1; }

static void *watch(void *unused) {
    (void)unused;
    while (access(getenv("USES_BEGIN"), F_OK)) usleep(100000);
    read_arrays(getenv("USES_LOG"));
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigaction(SIGSEGV, &action, &before);
    for (int round = 0; round < number("USES_ROUNDS"); round++) {
        protect(PROT_NONE);
        usleep(1000 * number("USES_MS"));
        protect(PROT_READ | PROT_WRITE);
    }
    FILE *out = fopen(getenv("USES_OUT"), "w");
    for (int n = 0; n < num_arrays; n++) {
        int seen = 0;
        for (int m = 0; m < n && !seen; m++) seen = !strcmp(arrays[m].name, arrays[n].name);
        if (!seen) write_name(out, n);
    }
    fprintf(out, "end\n");
    fclose(out);
    return NULL;
}

__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    if (getenv("USES_BEGIN") && pthread_create(&thread, NULL, watch, NULL) == 0) pthread_detach(thread);
}
