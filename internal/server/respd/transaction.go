package respd

// errMulti answers MULTI and whatever follows it, up to EXEC, DISCARD, RESET or QUIT.
const errMulti = refusal("ERR leaf: MULTI is refused: there are no transactions here, and everything up to EXEC or DISCARD is refused, too, " +
	"and issues no ID; send these commands as a pipeline without MULTI; after a MULTI without EXEC send DISCARD")

// The commands of a transaction are in the table so that a client which asks for one
// gets no ID. It sends them in one piece, and after an error to MULTI it reads no reply
// to those behind it: an ID that they took would be lost, or be taken for the reply to a
// later command. They are open, because a stranger's login may stand behind its MULTI.
var transactionCommands = []command{
	{name: "multi", arity: -1, hidden: true, open: true, run: multi},
	{name: "exec", arity: -1, hidden: true, open: true, leaves: true, run: exec},
	{name: "discard", arity: -1, hidden: true, open: true, leaves: true, run: discard},
}

func multi(c *conn, _ args) error {
	c.inMulti = true
	return errMulti
}

func exec(c *conn, _ args) error {
	if !c.inMulti {
		return refusal("ERR EXEC without MULTI")
	}
	c.inMulti = false
	return errMulti
}

func discard(c *conn, _ args) error {
	if !c.inMulti {
		return refusal("ERR DISCARD without MULTI")
	}
	c.inMulti = false
	c.out.ok()
	return nil
}
