// The catalog by mercurius with graphql-jit, joins by hand: node mercurius.mjs PORT
import Fastify from "fastify";
import mercurius from "mercurius";
import pg from "pg";

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 8 });
const BOOK = `SELECT b.id, b.name, b.page_count AS "pageCount", a.id AS author, a.first_name, a.last_name, c.id AS category, c.name AS kind
  FROM catalog_book b JOIN catalog_author a ON a.id = b.author_id LEFT JOIN catalog_category c ON c.id = b.category_id`;

const schema = `
  type Category { id: ID! name: String! }
  type Author { id: ID! firstName: String! lastName: String! bookCount: Int! books: [Book!]! }
  type Book { id: ID! name: String! pageCount: Int! author: Author! category: Category }
  input BookInput { name: String! pageCount: Int! authorId: Int! categoryId: Int }
  type Query { getAllBooks: [Book!]! getAllAuthors: [Author!]! searchBooks(title: String!): [Book!]! getBookById(id: ID!): Book }
  type Mutation { addBook(book: BookInput!): Book! }`;

// A statement with a name is prepared once for each connection.
const rows = async (name, text, values = []) => (await pool.query({ name, text, values })).rows;

function book({ author, first_name: firstName, last_name: lastName, category, kind, ...fields }) {
  return { ...fields, author: { id: author, firstName, lastName }, category: category && { id: category, name: kind } };
}

const resolvers = {
  Query: {
    getAllBooks: async () => (await rows("all", `${BOOK} ORDER BY b.id`)).map(book),
    getAllAuthors: () =>
      rows("authors", `SELECT id, first_name AS "firstName", last_name AS "lastName",
        (SELECT count(*)::int FROM catalog_book b WHERE b.author_id = a.id) AS "bookCount" FROM catalog_author a ORDER BY id`),
    searchBooks: async (_, { title }) =>
      (await rows("search", `${BOOK} WHERE b.name_folded LIKE $1 ORDER BY b.name COLLATE "C", b.id`, [`%${title.toLowerCase()}%`])).map(book),
    getBookById: async (_, { id }) => (await rows("one", `${BOOK} WHERE b.id = $1`, [id])).map(book)[0] ?? null,
  },
  Mutation: {
    addBook: async (_, { book: { name, pageCount, authorId } }) => {
      const [added] = await rows("add", `WITH b AS (INSERT INTO catalog_book (name, name_folded, page_count, author_id)
        VALUES ($1, $2, $3, $4) RETURNING id, name, author_id) SELECT b.id, b.name, a.id AS author, a.first_name, a.last_name
        FROM b JOIN catalog_author a ON a.id = b.author_id`, [name, name.toLowerCase(), pageCount, authorId]);
      return book(added);
    },
  },
};

const loaders = {
  Author: {
    async books(queries) {
      const found = await rows("books", `SELECT author_id, id, name, page_count AS "pageCount" FROM catalog_book
        WHERE author_id = ANY($1) ORDER BY id`, [queries.map(({ obj }) => obj.id)]);
      const byAuthor = Map.groupBy(found, (row) => row.author_id);
      return queries.map(({ obj }) => byAuthor.get(obj.id) ?? []);
    },
  },
};

const app = Fastify();
app.register(mercurius, { schema, resolvers, loaders, jit: 1, path: "/graphql" });
await app.listen({ port: Number(process.argv[2]), host: "127.0.0.1" });
