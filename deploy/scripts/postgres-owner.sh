#!/bin/sh
# Makes the database of docker-compose.yml and its owner. The image runs it once, in an empty data folder. The owner
# makes the tiers' roles and is no superuser. The superuser has no password, so it can log in only inside the container.
set -eu
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username=postgres --dbname=postgres << 'SQL'
\getenv password POSTGRES_PASSWORD
CREATE ROLE mss LOGIN CREATEROLE PASSWORD :'password';
CREATE DATABASE mss OWNER mss;
ALTER ROLE postgres PASSWORD NULL;
SQL
