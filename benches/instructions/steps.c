/* Counts the instructions of a program, one step at a time, where the processor has no counters that can be read and valgrind
 * does not know its vector instructions. Usage: steps PROGRAM [ARGUMENT...]. Prints the number to standard error. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments) {
    if (count < 2) return 2;
    pid_t child = fork();
    if (child == 0) {
        personality(ADDR_NO_RANDOMIZE);
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execv(arguments[1], arguments + 1);
        perror(arguments[1]);
        _exit(127);
    }
    unsigned long long steps = 0;
    int status;
    waitpid(child, &status, 0);
    while (!WIFEXITED(status) && !WIFSIGNALED(status)) {
        int signal = WSTOPSIG(status) == 5 ? 0 : WSTOPSIG(status);
        if (ptrace(PTRACE_SINGLESTEP, child, 0, signal) != 0) return perror("ptrace"), 1;
        waitpid(child, &status, 0);
        steps++;
    }
    fprintf(stderr, "%llu\n", steps);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
