/** Calls the service's HTTP API from a backend: push, batch, recall and trace. Blocking, and without dependencies. */
package org.mobilesync.backend;
