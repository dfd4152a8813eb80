// Package fastclock makes the clocks of a process run faster, so that a test sees days
// of a server in minutes. Everything that the server does by time happens as often as in
// these days: its timers, timeouts and deadlines run as fast as its clocks.
//
// Go's runtime reads both clocks through one function of the kernel's vDSO. Start
// replaces the address of this function in the runtime. Other programs, the kernel and
// the network keep their pace, so to the process the machine seems to be slower.
package fastclock
