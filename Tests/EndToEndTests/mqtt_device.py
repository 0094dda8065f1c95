#!/usr/bin/env python3
"""A device that uses Eclipse Paho's MQTT client. It prints each event as a line of JSON. It disconnects after a number
of messages, or ends when the gateway ends the connection."""

import argparse
import json
import time

import paho.mqtt.client as mqtt

LINGER_SECONDS = 0.5


def show(**event):
    print(json.dumps(event), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("client", "user", "password", "topic", "ca"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--version", type=int, choices=(4, 5), default=5)
    parser.add_argument("--qos", type=int, default=1)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    device = mqtt.Client(client_id=options.client, protocol=options.version)
    device.tls_set(options.ca)
    device.username_pw_set(options.user, options.password)
    state = {"messages": 0, "is_over": False}

    def on_connect(client, _data, _flags, code, *_):
        show(event="connected", code=getattr(code, "value", code))
        client.subscribe(options.topic, options.qos)

    def on_subscribe(_client, _data, _id, granted, *_):
        show(event="subscribed", granted=[getattr(one, "value", one) for one in granted])

    def on_message(_client, _data, message):
        state["messages"] += 1
        properties = dict(getattr(message.properties, "UserProperty", [])) if options.version == 5 else {}
        show(topic=message.topic, payload=message.payload.decode(), qos=message.qos, **properties)

    def on_disconnect(_client, _data, code, *_):
        state["is_over"] = True
        show(event="disconnected", code=getattr(code, "value", code))

    device.on_connect, device.on_subscribe = on_connect, on_subscribe
    device.on_message, device.on_disconnect = on_message, on_disconnect
    device.connect("127.0.0.1", options.port)
    end = time.monotonic() + options.seconds
    while not state["is_over"] and state["messages"] < options.count and time.monotonic() < end:
        device.loop(0.1)
    # Paho sends the last answer after the callback for its message.
    linger = time.monotonic() + LINGER_SECONDS
    while not state["is_over"] and time.monotonic() < linger:
        device.loop(0.1)
    device.disconnect()


main()
