package admin

import (
	"context"
	"net"
	"net/http"
	"os/user"
	"strconv"

	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/requestid"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// localActor adds who has opened a connection to the socket, as the system knows it, to the
// context of the connection.
func localActor(ctx context.Context, conn net.Conn) context.Context {
	a := manage.Actor{Who: "local user", Address: "socket"}
	if c, ok := conn.(*accept.Conn); ok {
		if c, ok := c.Conn.(*net.UnixConn); ok {
			if uid, pid, ok := peer(c); ok {
				a = manage.Actor{Who: "local user " + userName(uid), Address: "socket, process " + strconv.Itoa(pid)}
			}
		}
	}
	return manage.WithActor(ctx, a)
}

func userName(uid int) string {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// remoteActor returns r with the name of what it was admitted by. The audit log shows the ID that
// the request brought.
func remoteActor(r *http.Request, who string) *http.Request {
	address := r.RemoteAddr
	if id := requestid.ID(r.Context()); id != "" {
		address += ", request " + id
	}
	return r.WithContext(manage.WithActor(r.Context(), manage.Actor{Who: who, Address: address}))
}
