-- The market place "bazaar" before the first message: all tables are empty then.
-- Later changes come as DDL messages. The demo's generator makes the same tables (tidelake.demo.bazaar).
CREATE DATABASE IF NOT EXISTS `bazaar`;
USE `bazaar`;

-- Becomes `merchants` in the third hour and loses `fax`. last_seen holds zero dates.
CREATE TABLE sellers (
    id BIGINT NOT NULL,
    handle VARCHAR(64) NOT NULL,
    name VARCHAR(120) NOT NULL,
    verified TINYINT(1) NOT NULL DEFAULT 0,
    balance DECIMAL(14,2) NOT NULL DEFAULT 0,
    joined DATETIME(3) NOT NULL,
    last_seen DATETIME NULL,
    fax VARCHAR(32) NULL,
    PRIMARY KEY (id) /*T![clustered_index] CLUSTERED */,
    UNIQUE KEY uk_handle (handle)
);

-- Some ids are above 2^63. Gets `shipping` in the first hour; `description` becomes `details` in the second.
CREATE TABLE listings (
    id BIGINT UNSIGNED NOT NULL,
    seller_id BIGINT NOT NULL,
    title VARCHAR(200) NOT NULL,
    description TEXT NULL,
    price DECIMAL(12,2) NOT NULL,
    grade ENUM('new','like new','for parts, as is','seller''s pick') NOT NULL DEFAULT 'new',
    tags SET('sale','vintage','handmade','bulky','réserve') NULL,
    attrs JSON NULL,
    stock INT UNSIGNED NOT NULL DEFAULT 1,
    listed TIMESTAMP(6) NOT NULL,
    PRIMARY KEY (id) /*T![clustered_index] CLUSTERED */,
    KEY idx_seller_id (seller_id)
);

-- A key of two columns. `quantity` becomes INT UNSIGNED in the second hour.
CREATE TABLE bids (
    listing_id BIGINT UNSIGNED NOT NULL,
    bid_no INT NOT NULL,
    amount DECIMAL(12,2) NOT NULL,
    quantity SMALLINT UNSIGNED NOT NULL,
    options BIT(12) NULL,
    placed TIMESTAMP(6) NOT NULL,
    withdrawn DATETIME(3) NULL,
    PRIMARY KEY (listing_id, bid_no) /*T![clustered_index] CLUSTERED */
);

-- No primary key: the unique NOT NULL column identifies rows.
CREATE TABLE parcels (
    tracking VARCHAR(32) NOT NULL,
    carrier CHAR(8) NOT NULL,
    weight DOUBLE NULL,
    pickup DATE NULL,
    slot TIME NULL,
    note TEXT NULL,
    UNIQUE KEY uk_tracking (tracking)
);

-- Partitioned: messages carry the partition's own table id.
CREATE TABLE boxes (
    id BIGINT NOT NULL,
    label VARCHAR(32) NULL,
    content JSON NULL,
    photo BLOB NULL,
    lights BIT(8) NULL,
    temperature DOUBLE NOT NULL,
    checked TIME(3) NULL,
    PRIMARY KEY (id) /*T![clustered_index] CLUSTERED */
) PARTITION BY HASH (id) PARTITIONS 4;

-- No key at all: equal rows are different rows.
CREATE TABLE visits (
    visited DATETIME(3) NOT NULL,
    page VARCHAR(64) NOT NULL,
    visitor VARBINARY(16) NULL,
    referrer TEXT NULL
);
