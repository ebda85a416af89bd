// Takes IDs with node-redis and prints each on a line of its own: host port password.
const assert = require('assert');
const { createClient } = require('redis');

const [host, port, password] = process.argv.slice(2);

async function main() {
  const client = createClient({ url: `redis://default:${password}@${host}:${port}/0`, name: 'node' });
  client.on('error', (err) => { throw err; });
  await client.connect();
  assert.strictEqual(await client.ping(), 'PONG');
  assert.strictEqual(await client.clientGetName(), 'node');
  assert.match(await client.info(), /redis_version:7\.0\.15/);
  assert.strictEqual(await client.commandCount(), (await client.command()).length);

  // What is asked for in one turn of the event loop goes out together.
  let ids = await Promise.all(Array.from({ length: 1000 }, () => client.incr('order')));
  const last = await client.incrBy('order', 10);
  for (let i = last - 9; i <= last; i++) ids.push(i);
  ids = ids.concat(await client.sendCommand(['LEAF.NEXT', 'order', 'COUNT', '50']));

  // JavaScript rounds what is above 2^53, so that different IDs become equal: this is
  // what TEXT is for. If it ever fails, the documentation can say less.
  const rounded = await client.sendCommand(['LEAF.SNOWFLAKE', 'COUNT', '100']);
  assert.ok(new Set(rounded).size < 100, `${new Set(rounded).size} different numbers`);
  const texts = await Promise.all(Array.from({ length: 500 }, () => client.sendCommand(['LEAF.SNOWFLAKE', 'TEXT'])));
  ids = ids.concat(texts, await client.sendCommand(['LEAF.SNOWFLAKE', 'COUNT', '100', 'TEXT']));

  await assert.rejects(client.incr('no such tag'), /UNKNOWNTAG leaf: /);
  await assert.rejects(client.set('order', '1'), /IDs only grow/);
  await client.quit();

  const stranger = createClient({ url: `redis://default:wrong@${host}:${port}`, socket: { reconnectStrategy: () => new Error('once is enough') } });
  const said = [];
  stranger.on('error', (err) => said.push(err.message));
  await assert.rejects(stranger.connect());
  assert.match(said.join(), /WRONGPASS/);

  process.stdout.write(ids.join('\n') + '\n');
}

main().then(() => process.exit(0), (err) => { console.error(err); process.exit(1); });
