"""Writes what is generated from the declaration of the records."""

from tests.records.tables import write

if __name__ == "__main__":
    write()
