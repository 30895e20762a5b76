// Package chaos makes the faults of docs/reliability.md happen to the real binary, bin/vllm-vcr, in processes of its own, and
// checks what each must lead to. Every test is named for its row: TestF12_… proves row F12. Tests have the build tag chaos,
// since they kill, stop, starve and flood, and want to be alone on the machine; with -short the longest take less of everything.
//
// It knows the program as its users do, by command line, signals, sockets and /proc, and uses the project's packages only as
// peers of it: a frontend that engines join, a supervisor that lies.
package chaos
