import ServiceKit

/// The console: pages and a JSON API for the people who run the service. Any number of them run side by side.
@main
struct Main {
    static func main() async {
        await ServiceMain.run("mss-console", settings: []) { _ in [] }
    }
}
