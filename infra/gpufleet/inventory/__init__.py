"""Hosts for Ansible: the inventory as `ansible-inventory` prints it, and the facts that the roles leave behind."""
