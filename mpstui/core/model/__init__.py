"""The ground floor: the types, errors and checks that every part of core shares."""
