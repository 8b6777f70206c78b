-- The shop of --demo. Its rows are the same each time.
PRAGMA journal_mode = WAL;
BEGIN;

CREATE TABLE customers (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL UNIQUE,
  city TEXT NOT NULL,
  joined DATE NOT NULL
);
CREATE TABLE products (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  category TEXT NOT NULL,
  cents INTEGER NOT NULL CHECK (cents > 0), -- the price
  stock INTEGER NOT NULL CHECK (stock >= 0)
);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers,
  placed DATE NOT NULL,
  shipped DATE CHECK (shipped >= placed) -- NULL until then
);
CREATE TABLE order_lines (
  order_id INTEGER NOT NULL REFERENCES orders ON DELETE CASCADE,
  product_id INTEGER NOT NULL REFERENCES products,
  quantity INTEGER NOT NULL CHECK (quantity > 0),
  cents INTEGER NOT NULL, -- the price of one on that day
  PRIMARY KEY (order_id, product_id)
) WITHOUT ROWID;
CREATE INDEX orders_by_customer ON orders (customer_id, placed);
CREATE INDEX order_lines_by_product ON order_lines (product_id);
CREATE VIEW sales AS
SELECT
  orders.id AS order_id, placed, name AS customer, city,
  sum(quantity) AS items, sum(quantity * cents) / 100.0 AS total
FROM orders
JOIN customers ON customers.id = customer_id
JOIN order_lines ON order_lines.order_id = orders.id
GROUP BY orders.id;

INSERT INTO customers (name, email, city, joined) VALUES
  ('Ada Lovelace', 'ada@example.com', 'London', '2024-01-08'),
  ('Grace Hopper', 'grace@example.com', 'New York', '2024-01-23'),
  ('Mary Somerville', 'mary@example.com', 'Edinburgh', '2024-02-11'),
  ('Emmy Noether', 'emmy@example.com', 'Göttingen', '2024-03-02'),
  ('Katherine Johnson', 'katherine@example.com', 'Washington', '2024-03-19'),
  ('Sofja Kowalewskaja', 'sofja@example.com', 'Stockholm', '2024-04-05'),
  ('Hedy Lamarr', 'hedy@example.com', 'Vienna', '2024-04-30'),
  ('Rosalind Franklin', 'rosalind@example.com', 'London', '2024-05-17'),
  ('Chien-Shiung Wu', 'wu@example.com', 'New York', '2024-06-12'),
  ('Lise Meitner', 'lise@example.com', 'Vienna', '2024-07-01'),
  ('Marie Curie', 'marie@example.com', 'Paris', '2024-07-28'),
  ('Émilie du Châtelet', 'emilie@example.com', 'Paris', '2024-08-15'),
  ('Caroline Herschel', 'caroline@example.com', 'Hannover', '2024-09-09'),
  ('Barbara Liskov', 'barbara@example.com', 'Boston', '2024-10-03'),
  ('Maryam Mirzakhani', 'maryam@example.com', 'Tehran', '2024-11-20'),
  ('Hypatia', 'hypatia@example.com', 'Alexandria', '2024-12-24');

INSERT INTO products (name, category, cents, stock) VALUES
  ('Assam', 'tea', 890, 40),
  ('Darjeeling', 'tea', 1250, 22),
  ('Earl Grey', 'tea', 790, 65),
  ('Gunpowder', 'tea', 680, 31),
  ('Jasmine', 'tea', 950, 18),
  ('Sencha', 'tea', 1100, 0),
  ('Blue Mountain', 'coffee', 3200, 7),
  ('House blend', 'coffee', 1190, 84),
  ('Sidamo', 'coffee', 1450, 29),
  ('Decaf', 'coffee', 1290, 12),
  ('Drinking chocolate', 'cocoa', 840, 37),
  ('Cocoa nibs', 'cocoa', 720, 15),
  ('Teapot', 'things', 3490, 9),
  ('French press', 'things', 2990, 6),
  ('Mug', 'things', 1150, 53),
  ('Tea strainer', 'things', 590, 44),
  ('Kettle', 'things', 4900, 4),
  ('Milk frother', 'things', 1990, 0);

-- Remainders stand for chance. One customer never ordered, and what was ordered last is not shipped yet.
WITH RECURSIVE count (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 150)
INSERT INTO orders (id, customer_id, placed, shipped)
SELECT
  n,
  1 + n * 7919 % 1009 % 41 % 15,
  date('2025-01-01', (n * 12 / 5) || ' days'),
  CASE WHEN n <= 143 THEN date('2025-01-01', (n * 12 / 5 + 1 + n * 7 % 4) || ' days') END
FROM count;

WITH RECURSIVE count (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 4)
INSERT INTO order_lines (order_id, product_id, quantity, cents)
SELECT orders.id, products.id, 1 + (orders.id * 31 + n * 17) % 101 % 11 % 3, cents
FROM orders
JOIN count ON n <= 1 + orders.id * 523 % 997 % 4
JOIN products ON products.id = 1 + (orders.id * 611 % 1013 + n * 5) % 18;

ANALYZE;
COMMIT;
