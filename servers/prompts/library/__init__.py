"""Reads folders of files as libraries of prompts, and watches them."""
