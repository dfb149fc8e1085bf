// The catalog by PostGraphile, from the tables themselves: node postgraphile.mjs PORT
import { createServer } from "node:http";
import { PgSimplifyInflectionPreset } from "@graphile/simplify-inflection";
import pg from "pg";
import { postgraphile } from "postgraphile";
import { makePgService } from "postgraphile/adaptors/pg";
import { grafserv } from "postgraphile/grafserv/node";
import { PostGraphileAmberPreset } from "postgraphile/presets/amber";

const connectionString = process.env.DATABASE_URL;
// A search is a function of the database, as its documentation recommends.
const database = new pg.Client({ connectionString });
await database.connect();
await database.query(`CREATE OR REPLACE FUNCTION search_books(title text) RETURNS SETOF catalog_book LANGUAGE sql STABLE AS $$
  SELECT * FROM catalog_book WHERE name_folded LIKE '%' || lower(title) || '%' ORDER BY name COLLATE "C", id $$`);
await database.end();

const preset = {
  extends: [PostGraphileAmberPreset, PgSimplifyInflectionPreset],
  disablePlugins: ["NodePlugin"],
  schema: { defaultBehavior: "+list" },
  pgServices: [makePgService({ connectionString, schemas: ["public"], poolConfig: { max: 8 } })],
  grafast: { explain: false },
  grafserv: { graphiql: false, watch: false },
};
const server = createServer();
await postgraphile(preset).createServ(grafserv).addTo(server);
server.listen(Number(process.argv[2]), "127.0.0.1");
