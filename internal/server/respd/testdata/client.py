# Takes IDs with python3-redis and prints each on a line of its own: host port password.
import sys
import threading

import redis

host, port, password = sys.argv[1], int(sys.argv[2]), sys.argv[3]
r = redis.Redis(host=host, port=port, password=password, client_name="python")
assert r.ping()
assert r.client_getname() == "python", r.client_getname()
assert r.info()["redis_version"] == "7.0.15", r.info()
assert r.info("clients")["connected_clients"] >= 1
assert r.command_count() == len(r.command())

ids, lock = [], threading.Lock()


def take(_):
    mine = [r.incr("order") for _ in range(100)]
    last = r.incrby("order", 10)
    mine += range(last - 9, last + 1)
    p = r.pipeline(transaction=False)
    for _ in range(100):
        p.incr("order")
    mine += p.execute()
    mine += r.execute_command("LEAF.NEXT", "order", "COUNT", 50)
    mine.append(r.execute_command("LEAF.NEXT", "order"))
    with lock:
        ids.extend(mine)


threads = [threading.Thread(target=take, args=(i,)) for i in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
ids += r.execute_command("LEAF.SNOWFLAKE", "COUNT", 100)
ids.append(int(r.execute_command("LEAF.SNOWFLAKE", "key", "TEXT")))

fields = r.execute_command("LEAF.DECODE", ids[-1])
assert fields[0:2] == [b"timestamp", ids[-1]], fields

try:
    r.incr("no such tag")
    raise AssertionError("no error")
except redis.ResponseError as e:
    assert str(e).startswith("UNKNOWNTAG leaf: "), e
try:
    r.set("order", 1)
    raise AssertionError("no error")
except redis.ResponseError as e:
    assert "IDs only grow" in str(e), e
try:
    redis.Redis(host=host, port=port, password="wrong").incr("order")
    raise AssertionError("no error")
except (redis.AuthenticationError, redis.ResponseError) as e:  # later releases say the first
    assert "invalid username-password pair" in str(e), e
try:
    redis.Redis(host=host, port=port).incr("order")
    raise AssertionError("no error")
except redis.AuthenticationError:
    pass

for i in ids:
    print(i)
