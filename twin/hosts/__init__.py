"""Host twin: bare GPU servers as real systemd, sshd and apt on overlay copies of one Debian root."""
