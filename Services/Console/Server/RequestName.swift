/// The name under which the request in work is found in answers and logs.
enum RequestName {
    /// Empty: what is done is no request's.
    @TaskLocal static var current = ""
}
