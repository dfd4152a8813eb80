/*
 * A model of replicas that share one PostgreSQL: writers with their row lock, the feed and the
 * outbox, of one org. Spin executes the steps of the processes in every possible order, with
 * crashes between them, and evaluates every property. docs/postgres.md has the results.
 *
 * The table of events also has a unique key, which turns equal numbers into an error. The model
 * has none: the lock alone must prevent them.
 *
 * To read it without knowing Promela:
 *   a; b, a -> b   a, then b; other processes may act in between
 *   d_step, atomic one step, such as an SQL statement: no other process acts in between
 *   a condition    at the beginning of a step: the process waits until it is true
 *   if, do         one of the alternatives (::) whose first step is possible now; do repeats that
 *                  until break. Spin tries every possible alternative.
 *   end:           a process may wait here forever; waiting anywhere else is an error
 *   init           the process that starts the others
 */
#ifndef WRITERS       /* otherwise, the command line sets all of these */
#define WRITERS 2     /* processes that record events */
#define EVENTS 2      /* at most 4 in total, in transactions of 1 or 2 */
#define READERS 1     /* clients that follow the feed */
#define DISPATCHERS 2 /* processes that send deliveries */
#define CRASHES 1     /* of all processes together */
#define FAULTS 0      /* attempts that fail, deliveries that are released, and delays, together */
#endif
#define ROWS 4        /* room for events */
#define NUMBERS 8     /* room for their numbers */
#define PAGE 2        /* events that a reader reads at once */
#define LEASE 2       /* ticks of the clock */
#define NOBODY 255

/* What is committed. What is not is in the variables of a process. */
byte next_seq;              /* of the org */
bool committed[ROWS];       /* whether the event exists, and its delivery */
byte seq[ROWS];             /* the number of the event */
byte due_at[ROWS];          /* when to send its delivery; 0 if that is over */
bool leased[ROWS];          /* whether due_at is the end of a lease */
/* Row locks, and the process that holds each. */
byte org_lock = NOBODY, row_lock[ROWS] = NOBODY;
/* The rest of the world. */
byte now = 1;               /* the database's clock */
byte rows, begun;           /* how many events are committed, and how many were begun */
byte newest;                /* the greatest number of an event, plus 1: it wakes readers */
byte crashes, faults, sequence;

/* What has happened. Only the properties use it. */
bool taken[NUMBERS];        /* whether an event has the number */
bool sent[ROWS];            /* whether the receiver has got the event */
typedef Events { bool event[ROWS] }
Events seen[READERS + 1];   /* the events that each reader has got */
typedef Lease { byte event = NOBODY; byte until }
Lease held[DISPATCHERS + 1]; /* of each dispatcher, its last lease without a recorded outcome */
/* The properties. delivered and complete are evaluated at the end of a run. */
hidden byte unique, dense, kept, once, in_order, complete, delivered, one_lease;
inline check(property, condition) { property = (condition); assert(property) }

hidden byte i, j; /* loop variables */
#define fault faults < FAULTS -> faults++
#define may_crash crashes < CRASHES -> crashes++; goto crash

/* A writer records events. READ COMMITTED: a statement sees what was committed before it. */
proctype writer(byte me) {
	byte n, first;
begin:
end:	if
	:: atomic { begun + 1 <= EVENTS -> n = 1; begun = begun + n }
	:: atomic { begun + 2 <= EVENTS -> n = 2; begun = begun + n }
	fi;
#if defined(SEQUENCE)
	d_step { first = sequence; sequence = sequence + n }; /* nextval: a rollback keeps it */
#elif defined(EARLYREAD)
	first = next_seq;
#endif
#ifndef NOLOCK
	if
	:: d_step { org_lock == NOBODY -> org_lock = me } /* BEGIN; SELECT ... FOR UPDATE */
	:: may_crash
	fi;
#endif
#if !defined(SEQUENCE) && !defined(EARLYREAD)
	if
	:: first = next_seq /* SELECT next_seq */
	:: may_crash
	fi;
#endif
	if
	:: d_step { /* INSERT INTO events, outbox; UPDATE orgs SET next_seq = next_seq + n; COMMIT */
		for (i : rows .. rows + n - 1) {
			seq[i] = first + i - rows;
			check(unique, !taken[seq[i]]);
			check(dense, seq[i] <= i);
			committed[i] = true; due_at[i] = now; taken[seq[i]] = true;
			if :: seq[i] >= newest -> newest = seq[i] + 1 :: else fi
		}
		next_seq = next_seq + n; first = rows; rows = rows + n;
		if :: org_lock == me -> org_lock = NOBODY :: else fi
	   }
	:: may_crash
	fi;
	if
	:: d_step { for (i : first .. first + n - 1) { check(kept, committed[i]) } } /* 2xx */
	:: crashes < CRASHES -> crashes++ /* the client gets no answer */
	fi;
	n = 0; first = 0;
	goto begin;
crash: /* The server rolls back. The client sends its request again. */
	atomic {
		if :: org_lock == me -> org_lock = NOBODY :: else fi;
		begun = begun - n; n = 0; first = 0
	}
	goto begin
}

/* A reader follows the feed from its cursor. If its replica crashes, it continues on another. */
proctype reader(byte me) {
	byte cursor, expected, page[PAGE], size, k;
end:	do
	:: d_step { k == size && newest > cursor -> /* SELECT ... WHERE seq >= cursor ORDER BY seq LIMIT 2 */
		k = 0; size = 0;
		for (j : cursor .. newest - 1) {
			for (i : 0 .. ROWS - 1) {
				if :: committed[i] && seq[i] == j && size < PAGE -> page[size] = i; size++ :: else fi
			}
		}
	   }
	:: d_step { k < size -> /* the client gets an event */
		i = page[k]; page[k] = 0; k++;
		check(once, !seen[me].event[i]);
		check(in_order, seq[i] >= expected);
		seen[me].event[i] = true; expected = seq[i] + 1;
		cursor = seq[i] + 1
	   }
	:: d_step { k < size && crashes < CRASHES -> /* the rest of the page is lost */
		crashes++; k = size; page[0] = 0; page[1] = 0
	   }
	od
}

/* A dispatcher claims a due delivery, sends it and records the outcome. A success counts even if
 * its lease has ended. After a crash, the delivery is due again when the lease ends. */
#define due(x, at) (due_at[x] > 0 && due_at[x] <= at && row_lock[x] == NOBODY)
#ifdef NOCLAIMLOCK
#define claim(x) d_step { due(x, clock) -> e = x }
#else
#define claim(x) d_step { due(x, clock) -> e = x; row_lock[x] = me }
#endif

proctype dispatcher(byte me) {
	byte clock, e, until;
	bool success;
begin:
end:	atomic { due(0, now) || due(1, now) || due(2, now) || due(3, now) -> clock = now }; /* BEGIN */
	if /* SELECT ... WHERE due_at <= clock LIMIT 1 FOR UPDATE SKIP LOCKED */
	:: claim(0) :: claim(1) :: claim(2) :: claim(3)
	:: else -> goto done
	fi;
	if
	:: d_step { /* UPDATE outbox SET due_at = until, leased = 1; COMMIT */
		until = clock + LEASE;
		due_at[e] = until; leased[e] = true; row_lock[e] = NOBODY;
		held[me].event = e; held[me].until = until
	   }
	:: may_crash
	fi;
	if
	:: d_step { /* the request */
		j = 0;
		do
		:: j < DISPATCHERS ->
			check(one_lease, j == me || held[j].event != e || held[j].until <= now || until <= now);
			j++
		:: else -> break
		od;
		sent[e] = true
	   }
	:: fault; goto record /* release it instead */
	:: may_crash
	fi;
	if
	:: success = true
	:: fault
	:: may_crash
	fi;
record:
	if
	:: d_step { row_lock[e] == NOBODY -> /* UPDATE outbox ...; COMMIT */
		if
		:: success -> due_at[e] = 0; leased[e] = false
		:: !success && leased[e] && due_at[e] == until -> due_at[e] = now; leased[e] = false
		:: else
		fi;
		held[me].event = NOBODY; held[me].until = 0
	   }
	:: may_crash
	fi;
	goto done;
crash: /* the server rolls back */
	atomic { if :: row_lock[e] == me -> row_lock[e] = NOBODY :: else fi }
done:
	atomic { clock = 0; e = 0; until = 0; success = false; goto begin }
}

/* init starts the processes and is the clock. A run ends when no process can act, and time would
 * change nothing. */
init {
	byte n;
	atomic {
		do :: n < WRITERS -> run writer(n); n++ :: else -> n = 0; break od;
		do :: n < READERS -> run reader(n); n++ :: else -> n = 0; break od;
		do :: n < DISPATCHERS -> run dispatcher(n); n++ :: else -> n = 0; break od
	}
	do
	:: fault; now++ /* a delay: time passes although a process could act */
	:: timeout -> /* no process can act */
		d_step { n = 0; for (i : 0 .. ROWS - 1) { if :: due_at[i] > now -> n++ :: else fi } }
		if
		:: n > 0 -> now++
		:: else -> break
		fi
	od;
	if
	:: d_step {
		for (i : 0 .. ROWS - 1) {
			check(delivered, DISPATCHERS == 0 || !committed[i] || (sent[i] && due_at[i] == 0));
			j = 0;
			do
			:: j < READERS -> check(complete, seen[j].event[i] == committed[i]); j++
			:: else -> break
			od
		}
	   }
	fi
}
