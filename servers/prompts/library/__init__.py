"""Folders of files as libraries of prompts."""
