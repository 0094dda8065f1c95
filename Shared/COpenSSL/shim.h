// libcrypto, which librabbitmq and libpq use: what this process has to say to it itself.
#pragma once
#include <openssl/crypto.h>
