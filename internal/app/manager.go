package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	managerPause = time.Second      // between two reports
	startGrace   = 30 * time.Second // that each report asks for while the node is not ready
	selfCheckMax = 1000             // tags that one self-check looks at
	maxStatus    = 1000             // bytes of a line for people: systemd drops a message of 4,096, with all that it says
)

// Manager is the program that started this one and wants to hear how it is: systemd, or
// another one that speaks the protocol of sd_notify(3). The zero value is none.
type Manager struct {
	Socket   string        // a Unix datagram socket; @ begins the name of an abstract one
	Watchdog time.Duration // the manager ends the node when it hears nothing for so long; 0: it does not
}

// ManagerOf returns the manager that the environment of the process pid names.
func ManagerOf(environ []string, pid int) Manager {
	value := func(name string) (last string) {
		for _, entry := range environ {
			if v, ok := strings.CutPrefix(entry, name+"="); ok {
				last = v
			}
		}
		return last
	}
	m := Manager{Socket: value("NOTIFY_SOCKET")}
	if of := value("WATCHDOG_PID"); of == "" || of == strconv.Itoa(pid) {
		if us, err := strconv.ParseInt(value("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
			m.Watchdog = time.Duration(us) * time.Microsecond
		}
	}
	return m
}

// reporter tells the manager how the node is.
type reporter struct {
	app   *App
	conn  net.Conn
	log   *slog.Logger
	every time.Duration
	check func() // ends when the engines answer; nil: there is no watchdog

	ready bool // was said
}

// tellManager tells the manager how the node is until ended is called; stopping says that
// its stop begins. Without a manager nothing happens.
func (a *App) tellManager() (stopping, ended func()) {
	m := a.opts.Manager
	if m.Socket == "" {
		return func() {}, func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	conn, err := new(net.Dialer).DialContext(ctx, "unixgram", m.Socket)
	if err != nil {
		cancel()
		a.log.Warn("the service manager cannot be told how the node is", "socket", m.Socket, "error", err)
		return func() {}, func() {}
	}
	r := &reporter{app: a, conn: conn, log: a.log, every: managerPause}
	if m.Watchdog > 0 {
		r.every = min(r.every, m.Watchdog/3)
		if r.check = a.opts.selfCheck; r.check == nil {
			r.check = a.selfCheck()
		}
	}
	go r.run(ctx)
	return func() {
			longest := a.drainDelay() + a.cfg.ShutdownTimeout + startGrace
			r.send("STOPPING=1", "EXTEND_TIMEOUT_USEC="+strconv.FormatInt(longest.Microseconds(), 10))
		}, func() {
			cancel()
			conn.Close()
		}
}

// run reports until ctx ends. A node whose engines do not answer is silent: the watchdog of
// the manager then ends it.
func (r *reporter) run(ctx context.Context) {
	t := time.NewTicker(r.every)
	defer t.Stop()
	for said := ""; ; {
		var news []string
		if r.check != nil {
			r.check()
			news = append(news, "WATCHDOG=1")
		}
		ready, line := r.app.statusLine()
		if line != said {
			news = append(news, "STATUS="+line)
		}
		if !r.ready {
			news = append(news, "EXTEND_TIMEOUT_USEC="+strconv.FormatInt(startGrace.Microseconds(), 10))
			if ready {
				news = append(news, "READY=1")
			}
		}
		if ctx.Err() != nil {
			return
		}
		if r.send(news...) { // else all of it is said again
			said, r.ready = line, r.ready || ready
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

func (r *reporter) send(lines ...string) bool {
	if len(lines) == 0 {
		return true
	}
	_ = r.conn.SetWriteDeadline(time.Now().Add(managerPause)) // a manager that does not read must not hold the node up
	if _, err := r.conn.Write([]byte(strings.Join(lines, "\n"))); err != nil {
		r.log.Debug("the service manager was not told how the node is", "error", err)
		return false
	}
	return true
}

// statusLine returns whether a mode serves, and one line about both for people.
func (a *App) statusLine() (ready bool, line string) {
	r := a.ready()
	var modes []string
	if r.Segment.Ready {
		modes = append(modes, "segment")
	}
	if r.Snowflake.Ready {
		modes = append(modes, fmt.Sprintf("snowflake as worker %d", a.worker.Status().Number))
	}
	ready, reasons, _ := r.Of("")
	if line = "not ready"; ready {
		line = "serving " + strings.Join(modes, " and ")
	}
	if len(reasons) > 0 {
		line += ": " + strings.Join(strings.Fields(reasons[0]), " ")
	}
	if len(reasons) > 1 {
		line += fmt.Sprintf(" (and %d more; see the log)", len(reasons)-1)
	}
	if len(line) > maxStatus {
		line = strings.ToValidUTF8(line[:maxStatus], "") + "… (see the log)"
	}
	return ready, line
}

// selfCheck returns a function that ends when the engines answer: it takes the locks of
// the tags, some in each call and all in turn, and an ID of snowflake mode. What they answer does not
// matter: a database that is down is no reason to end the node.
func (a *App) selfCheck() func() {
	after := ""
	return func() {
		if a.alloc != nil {
			page, more := a.alloc.SnapshotAfter(after, selfCheckMax)
			if after = ""; more {
				after = page[len(page)-1].Tag
			}
		}
		if a.worker != nil {
			ctx, cancel := context.WithTimeout(context.Background(), managerPause)
			defer cancel()
			_, _ = a.issuers.Snowflake.Next(ctx, "self-check")
		}
	}
}
